#version 460
// The row of a tensor for each index, which has a number for each of the tensor's first axes; NONE for one that is outside.
#extension GL_GOOGLE_include_directive : require
#define COMPUTE int64_t
#include "common.glsl"
#include "index.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint INDEX = 0;
layout(constant_id = 1) const uint DEPTH = 1;

layout(push_constant, scalar) uniform Push {
    uint64_t indices, places;
    uint n;
    // Of the axes.
    uint sizes[8];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint place = 0;
        bool is_inside = true;
        for (uint axis = 0; axis < DEPTH; axis++) {
            int64_t at = load(push.indices, i * DEPTH + axis, INDEX);
            is_inside = is_inside && is_within(at, push.sizes[axis]);
            place = place * push.sizes[axis] + uint(at);
        }
        U32(push.places).v[i] = is_inside ? place : NONE;
    }
}
