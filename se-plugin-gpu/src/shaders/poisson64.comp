#version 460
// Random numbers of Poisson distributions, as TensorFlow's, which computes them with doubles for all types: below a rate of 10 by
// D. Knuth, "The Art of Computer Programming", else by W. Hormann, "The transformed rejection method" (1993).
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math64.glsl"
#include "gamma64.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint RATE = 0;
layout(constant_id = 1) const uint TYPE = 0;
// Whether key and counter are in memory.
layout(constant_id = 2) const bool ARE_TENSORS = false;

layout(push_constant, scalar) uniform Push {
    uint64_t rates, key, counter, counter_high, out_;
    // Results; each of the distributions has so many.
    uint n, distributions, each;
} push;

// The largest number of a type.
double highest() {
    switch (TYPE) {
        case T_F16: return 65504.0lf;
        case T_F32: return 3.4028234663852886e38lf;
        case T_I32: return 2147483647.0lf;
        case T_I64: return 9223372036854774784.0lf;
        default: return uint64BitsToDouble(0x7feffffffffffffful);
    }
}

double unit(uint high, uint low) { return uint64BitsToDouble(0x3ff0000000000000ul | double_bits(uvec2(high, low))) - 1.0lf; }

double small_poisson(Philox from, uint64_t skipped, double rate) {
    double least = exp_(-rate), product = 1.0lf, x = 0.0lf;
    for (uint turn = 0; turn < RESERVED; turn++) {
        uvec4 bits = bits_of(from, skipped + turn);
        product *= unit(bits.z, bits.w);
        if (product <= least) return x;
        x += 1.0lf;
        product *= unit(bits.x, bits.y);
        if (product <= least) return x;
        x += 1.0lf;
    }
    return x;
}

double large_poisson(Philox from, uint64_t skipped, double rate) {
    double log_rate = log_(rate), b = 0.931lf + 2.53lf * sqrt(rate), a = -0.059lf + 0.02483lf * b, k = rate;
    double inverse_alpha = 1.1239lf + 1.1328lf / (b - 3.4lf);
    for (uint turn = 0; turn < RESERVED; turn++) {
        uvec4 bits = bits_of(from, skipped + turn);
        double u = unit(bits.z, bits.w) - 0.5lf, v = unit(bits.x, bits.y), shifted = 0.5lf - abs(u);
        k = floor((2.0lf * a / shifted + b) * u + rate + 0.43lf);
        if (k > highest()) continue;
        if (shifted >= 0.07lf && v <= 0.9277lf - 3.6224lf / (b - 2.0lf)) return k;
        if (k < 0.0lf || (shifted < 0.013lf && v > shifted)) continue;
        double s = log_(v * inverse_alpha / (a / (shifted * shifted) + b));
        if (s <= k * log_rate - rate - log_gamma_positive(k + 1.0lf)) return k;
    }
    // No draw was accepted: the type may be too small for the rate.
    return min(max(k, 0.0lf), highest());
}

void main() {
    Philox from = philox_of(push.key, push.counter, push.counter_high, ARE_TENSORS);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint distribution = i / push.each, at = i % push.each * push.distributions + distribution;
        double rate = load(push.rates, distribution, RATE), x = TYPE == T_I32 || TYPE == T_I64 ? 0.0lf : NAN;
        uint64_t skipped = uint64_t(i) * uint64_t(RESERVED);
        if (rate < 10.0lf) x = small_poisson(from, skipped, rate);
        else if (!isinf(rate) && !isnan(rate)) x = large_poisson(from, skipped, rate);
        store(push.out_, at, TYPE, x);
    }
}
