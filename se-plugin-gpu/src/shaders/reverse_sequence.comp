#version 460
// The first elements of each sequence, as many as its length says, in reverse order.
#extension GL_GOOGLE_include_directive : require
#define COMPUTE int64_t
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint LENGTH = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, lengths, out_;
    uint n;
    // The size of the axis of sequences, and from one element of it to the next; the same of the axis with a length each.
    uint size, stride, count, each;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint at = i / push.stride % push.size, from = i;
        int64_t length = min(load(push.lengths, i / push.each % push.count, LENGTH), int64_t(push.size));
        if (int64_t(at) < length) from = i - at * push.stride + (uint(length) - 1 - at) * push.stride;
        store_bits(push.out_, i, SIZE, load_bits(push.in_, from, SIZE));
    }
}
