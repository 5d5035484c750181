#version 460
// Sums of two tensors of one shape each, up to four: one for each workgroup's place along the second axis.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
// Whether four neighbours are read at once.
layout(constant_id = 1) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t first[4], second[4], sums[4];
    // Neighbours at once, so many times.
    uint sizes[4];
} push;

#include "neighbours.glsl"

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, pair = gl_WorkGroupID.y;
    for (uint i = gl_GlobalInvocationID.x; i < push.sizes[pair]; i += step) {
        vec4 sum = elements(push.first[pair], i * V) + elements(push.second[pair], i * V);
        store_elements(push.sums[pair], i * V, TYPE, sum);
    }
}
