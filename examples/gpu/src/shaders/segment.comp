#version 460
// Sums of the rows with the same number. Each thread reads all numbers, so that the order of a sum is always the same.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint INDEX = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t data, ids, out_;
    uint n, rows, inner;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        COMPUTE sum = COMPUTE(0);
        for (uint row = 0; row < push.rows; row++) {
            int64_t id = INDEX == T_I32 ? int64_t(int(U32(push.ids).v[row])) : U64(push.ids).v[row];
            if (id == i / push.inner) sum += load(push.data, row * push.inner + i % push.inner, TYPE);
        }
        store(push.out_, i, TYPE, sum);
    }
}
