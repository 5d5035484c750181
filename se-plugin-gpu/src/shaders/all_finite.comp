#version 460
// Whether all elements of up to ten tensors of one type are finite: writes false if one is not, and nothing otherwise.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint COUNT = 1;
// Whether four neighbours are read at once.
layout(constant_id = 2) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t out_, tensors[10];
    // Neighbours at once, so many times.
    uint sizes[10];
} push;

#include "neighbours.glsl"

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint at = 0; at < COUNT; at++) {
        for (uint i = gl_GlobalInvocationID.x; i < push.sizes[at]; i += step) {
            vec4 x = elements(push.tensors[at], i * V);
            // Each thread that writes, writes the same.
            if (!(is_finite(x[0]) && is_finite(x[1]) && is_finite(x[2]) && is_finite(x[3]))) store(push.out_, 0, T_BOOL, 0.0f);
        }
    }
}
