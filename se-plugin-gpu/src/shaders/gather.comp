#version 460
// Slices of `params` by their indices; zeros for an index that is outside.
#extension GL_GOOGLE_include_directive : require
#define COMPUTE int64_t
#include "common.glsl"
#include "bits.glsl"
#include "index.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint INDEX = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t params, indices, out_;
    // The shape of `params` is [batch, outer, size, inner], of `indices` [batch, count], of the result
    // [batch, outer, count, inner].
    uint n, outer, size, inner, count;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint row = i / push.inner, block = row / push.count;
        int64_t index = load(push.indices, block / push.outer * push.count + row % push.count, INDEX);
        // Drivers may load before they decide.
        bool is_inside = is_within(index, push.size);
        uint at = is_inside ? uint(index) : 0;
        uint64_t x = load_bits(push.params, (block * push.size + at) * push.inner + i % push.inner, SIZE);
        store_bits(push.out_, i, SIZE, is_inside ? x : uint64_t(0));
    }
}
