#version 460
// Numbers rounded to those that a few bits distinguish between two limits, and the gradients of that.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool IS_GRADIENT = false;
// Whether the limits are in memory, for each of `depth` neighbours. Their gradients are sums then.
layout(constant_id = 1) const bool ARE_TENSORS = false;
// Whether numbers are divided by the distance, or multiplied by its inverse: which of them the CPU does decides the nearest number.
layout(constant_id = 2) const bool IS_DIVIDED = false;

layout(push_constant, scalar) uniform Push {
    // The gradients that belong to each limit.
    uint64_t in_, gradients, low, high, out_, below, above;
    uint n, depth;
    // The first and the last whole number.
    float least, most;
} push;

float limit(uint64_t at, uint i) { return ARE_TENSORS ? F32(at).v[i % push.depth] : uintBitsToFloat(uint(at)); }

// Both limits, moved so that 0 is a number between them, the distance of two numbers, and its inverse.
vec4 nudged(float low, float high) {
    precise float scale = (high - low) / (push.most - push.least), zero = push.least - low / scale;
    // Halves are rounded up, without a sum that is rounded too.
    float whole = floor(zero);
    if (zero - whole >= 0.5f) whole += 1.0f;
    whole = zero < push.least ? push.least : zero > push.most ? push.most : whole;
    return vec4((push.least - whole) * scale, (push.most - whole) * scale, scale, (push.most - push.least) / (high - low));
}

float distances(float x, vec4 range) { return IS_DIVIDED ? x / range[2] : x * range[3]; }

float quantized(float x, vec4 range) {
    precise float zero = floor(distances(-range[0], range) + 0.5f);
    precise float part = distances(max(min(x, range[1]), range[0]) - range[0], range) - zero;
    precise float up = part + 0.5f;
    return floor(up) * range[2];
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        float x = F32(push.in_).v[i], low = limit(push.low, i), high = limit(push.high, i);
        // Variables that have not learnt their limits yet.
        bool is_none = ARE_TENSORS && low == 0.0f && high == 0.0f;
        vec4 range = nudged(low, high);
        if (IS_GRADIENT) {
            float gradient = F32(push.gradients).v[i];
            bool is_within = x >= range[0] && x <= range[1];
            F32(push.out_).v[i] = is_none || is_within ? gradient : 0.0f;
            if (ARE_TENSORS) {
                F32(push.below).v[i] = !is_none && x < range[0] ? gradient : 0.0f;
                F32(push.above).v[i] = !is_none && x > range[1] ? gradient : 0.0f;
            }
        } else {
            F32(push.out_).v[i] = is_none ? 0.0f : quantized(x, range);
        }
    }
}
