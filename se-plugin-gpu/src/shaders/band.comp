#version 460
// Matrices with zeros outside of a band around the diagonal.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    uint n, rows, columns, lower, upper;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint row = i / push.columns % push.rows, column = i % push.columns;
        uint64_t x = 0;
        if (row <= column + push.lower && column <= row + push.upper) x = load_bits(push.in_, i, SIZE);
        store_bits(push.out_, i, SIZE, x);
    }
}
