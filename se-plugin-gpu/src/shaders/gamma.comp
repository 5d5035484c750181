#version 460
// Random numbers of gamma distributions, as TensorFlow's: G. Marsaglia and W. Tsang, "A simple method for generating gamma variables".
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
// Whether key and counter are in memory.
layout(constant_id = 1) const bool ARE_TENSORS = false;

layout(push_constant, scalar) uniform Push {
    uint64_t alpha, key, counter, counter_high, out_;
    // Results; each of the distributions has so many.
    uint n, distributions, each;
} push;

// Uniform numbers, two of a counter: the second one first.
struct Uniform { Philox from; uint64_t used; uvec2 rest, bits; bool has_rest; };

Uniform next(Uniform one) {
    one.bits = one.rest;
    if (!one.has_rest) {
        uvec4 all = bits_of(one.from, one.used);
        one.used += 1;
        one.bits = uvec2(all.z, all.w);
        one.rest = uvec2(all.x, all.y);
    }
    one.has_rest = !one.has_rest;
    return one;
}

// What is left of 1, without the error of a small difference.
float rest_of(uvec2 bits) { return float((uint64_t(1) << 52) - double_bits(bits)) * 2.220446049250313e-16f; }

float gamma(Philox from, uint64_t skipped, float alpha) {
    Uniform one;
    one.from = from;
    one.used = skipped;
    one.has_rest = false;
    one.rest = uvec2(0, 0);
    if (alpha == 1.0f) {
        one = next(one);
        return -log_(rest_of(one.bits));
    }
    float d = alpha + (alpha < 1.0f ? 2.0f / 3.0f : -1.0f / 3.0f), c = 1.0f / 3.0f / sqrt(d), x = 0.0f, sine_ = 0.0f;
    bool has_sine = false;
    for (uint turn = 0; turn < RESERVED; turn++) {
        x = sine_;
        if (!has_sine) {
            uvec4 bits = bits_of(from, one.used);
            one.used += 1;
            float size = sqrt(-2.0f * log_(max(double_unit(uvec2(bits.x, bits.y)), 1.0e-7f)));
            float angle = 6.2831853071795864f * double_unit(uvec2(bits.z, bits.w));
            x = size * sine(angle, 1);
            sine_ = size * sine(angle, 0);
        }
        has_sine = !has_sine;
        float v = 1.0f + c * x;
        if (v > 0.0f) {
            v = v * v * v;
            one = next(one);
            float square = x * x;
            // The first condition saves two logarithms.
            bool is_taken = rest_of(one.bits) > 0.0331f * square * square;
            if (!is_taken) is_taken = log_(double_unit(one.bits)) < 0.5f * square + d * (1.0f - v + log_(v));
            if (is_taken && alpha >= 1.0f) return d * v;
            if (is_taken) {
                one = next(one);
                return d * v * pow_(double_unit(one.bits), 1.0f / alpha);
            }
        }
    }
    return d;
}

void main() {
    Philox from = philox_of(push.key, push.counter, push.counter_high, ARE_TENSORS);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint distribution = i / push.each, at = i % push.each * push.distributions + distribution;
        store(push.out_, at, TYPE, gamma(from, uint64_t(i) * uint64_t(RESERVED), load(push.alpha, distribution, TYPE)));
    }
}
