#version 460
// Sums or products of all elements before, along an axis.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const bool IS_PRODUCT = false;
layout(constant_id = 2) const bool IS_EXCLUSIVE = false;
layout(constant_id = 3) const bool IS_REVERSE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Rows, their length, and the step along a row.
    uint n, len, inner;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint first = i / push.inner * push.len * push.inner + i % push.inner;
        COMPUTE sum = COMPUTE(IS_PRODUCT ? 1 : 0);
        for (uint k = 0; k < push.len; k++) {
            uint at = first + (IS_REVERSE ? push.len - 1 - k : k) * push.inner;
            COMPUTE x = load(push.in_, at, TYPE), before = sum;
            sum = IS_PRODUCT ? sum * x : sum + x;
            store(push.out_, at, TYPE, IS_EXCLUSIVE ? before : sum);
        }
    }
}
