#version 460
// Elements in other places, of any type: strides of the source and of the target along up to 9 axes.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
// Bytes of an element.
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint RANK = 1;
// Whether `source` is not an address, but the element.
layout(constant_id = 2) const bool IS_VALUE = false;

struct Axis { uint len; int source, target; };
layout(push_constant, scalar) uniform Push {
    uint64_t source, target;
    uint n;
    Axis axes[9];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        int from = 0, to = 0;
        uint rest = i;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            int at = int(axis == 0 ? rest : rest % push.axes[axis].len);
            rest /= push.axes[axis].len;
            from += at * push.axes[axis].source;
            to += at * push.axes[axis].target;
        }
        uint64_t x = push.source;
        if (!IS_VALUE) x = load_bits(push.source + uint64_t(int64_t(from) * int64_t(SIZE)), 0, SIZE);
        store_bits(push.target + uint64_t(int64_t(to) * int64_t(SIZE)), 0, SIZE, x);
    }
}
