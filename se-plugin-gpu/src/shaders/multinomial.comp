#version 460
// Numbers of classes, drawn with the probabilities of their logits. A workgroup takes some draws of a row, of whose classes each thread
// sums a part. Weights are whole numbers of a small part of the largest, so that their sums are the same in any order.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint OUT = 0;
// Whether key and counter are in memory.
layout(constant_id = 2) const bool ARE_TENSORS = false;

layout(push_constant, scalar) uniform Push {
    uint64_t logits, key, counter, counter_high, out_;
    // `draws` of them are of a workgroup.
    uint rows, classes, samples, draws;
    // The largest weight.
    float scale;
} push;

shared float best[256];
shared uint64_t sums[256];

bool is_number(float x) { return !isnan(x) && !isinf(x); }

uint64_t weight(uint i, float most) {
    float x = load(push.logits, i, TYPE);
    return is_number(x) ? uint64_t(exp_(x - most) * push.scale) : uint64_t(0);
}

// The upper half of a product.
uint64_t product_high(uint64_t a, uint64_t b) {
    uint64_t a_low = uint64_t(uint(a)), a_high = a >> 32, b_low = uint64_t(uint(b)), b_high = b >> 32;
    uint64_t first = a_high * b_low + (a_low * b_low >> 32), second = a_low * b_high + uint64_t(uint(first));
    return a_high * b_high + (first >> 32) + (second >> 32);
}

// The class whose part of the sum this draw is in; that behind the last one if no class has a weight.
uint drawn(uvec2 bits, uint first, uint part, float most) {
    uint64_t place = product_high(double_bits(bits) << 12, sums[255]);
    if (sums[255] == 0) return push.classes;
    uint before = 0;
    for (uint size = 128; size > 0; size /= 2) if (sums[before + size - 1] <= place) before += size;
    uint64_t sum = before == 0 ? uint64_t(0) : sums[before - 1];
    uint from = before * part, end = min(from + part, push.classes), found = push.classes, last = from;
    for (uint k = from; k < end && found == push.classes; k++) {
        uint64_t own = weight(first + k, most);
        sum += own;
        if (own > 0) last = k;
        if (sum > place) found = k;
    }
    // A compiler may have rounded a weight in another way than in the sums.
    return found == push.classes ? last : found;
}

void main() {
    Philox philox_from = philox_of(push.key, push.counter, push.counter_high, ARE_TENSORS);
    uint lane = gl_LocalInvocationID.x, part = (push.classes + 255) / 256;
    uint from = min(lane * part, push.classes), end = min(from + part, push.classes);
    for (uint row = gl_WorkGroupID.x; row < push.rows; row += gl_NumWorkGroups.x) {
        uint first = row * push.classes;
        float most = -3.40282347e38f;
        for (uint k = from; k < end; k++) {
            float x = load(push.logits, first + k, TYPE);
            if (is_number(x)) most = max(most, x);
        }
        best[lane] = most;
        barrier();
        for (uint other = 128; other > 0; other /= 2) {
            if (lane < other) best[lane] = max(best[lane], best[lane + other]);
            barrier();
        }
        most = best[0];
        uint64_t sum = 0;
        for (uint k = from; k < end; k++) sum += weight(first + k, most);
        sums[lane] = sum;
        barrier();
        for (uint distance = 1; distance < 256; distance *= 2) {
            uint64_t before = lane < distance ? uint64_t(0) : sums[lane - distance];
            barrier();
            sums[lane] = before + sums[lane];
            barrier();
        }
        uint last = min((gl_WorkGroupID.y + 1) * push.draws, push.samples);
        for (uint draw = gl_WorkGroupID.y * push.draws + lane; draw < last; draw += 256) {
            uint64_t number = uint64_t(row) * uint64_t(push.samples) + uint64_t(draw);
            uvec4 bits = bits_of(philox_from, number / 2);
            uint found = drawn(number % 2 == 0 ? uvec2(bits.x, bits.y) : uvec2(bits.z, bits.w), first, part, most);
            uint at = row * push.samples + draw;
            if (OUT == T_I32) U32(push.out_).v[at] = found;
            else U64(push.out_).v[at] = int64_t(found);
        }
        barrier();
    }
}
