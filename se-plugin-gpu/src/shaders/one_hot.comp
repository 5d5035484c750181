#version 460
// One of two elements: whether an index is the place along a new axis.
#extension GL_GOOGLE_include_directive : require
#define COMPUTE int64_t
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint INDEX = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t indices, on, off, out_;
    // The shape of `indices` is [outer, inner], of the result [outer, depth, inner].
    uint n, depth, inner;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint row = i / push.inner;
        int64_t index = load(push.indices, row / push.depth * push.inner + i % push.inner, INDEX);
        bool is = index == row % push.depth;
        store_bits(push.out_, i, SIZE, load_bits(is ? push.on : push.off, 0, SIZE));
    }
}
