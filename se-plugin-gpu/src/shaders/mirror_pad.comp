#version 460
// A tensor that goes on beyond its ends: mirrored there, or from its other end. And the gradient of what is mirrored.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
const uint SYMMETRIC = 0, REFLECT = 1, ROLL = 2;
layout(constant_id = 0) const uint KIND = 0;
layout(constant_id = 1) const uint RANK = 1;
layout(constant_id = 2) const uint SIZE = 4;
layout(constant_id = 3) const uint TYPE = 0;
// For a gradient in how many ways an element can be in the result: 3 for each axis that is padded. Otherwise 0.
layout(constant_id = 4) const uint WAYS = 0;

// Along an axis, the result and the tensor, and how many of the result are before the tensor.
struct Axis { uint padded, size, before; };
layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    uint n;
    Axis axes[9];
} push;

// The mirrored positions; where the edge is repeated, they are one less from it.
int below(int at) { return -at - (KIND == SYMMETRIC ? 1 : 0); }
int above(int at, int size) { return 2 * size - 2 + (KIND == SYMMETRIC ? 1 : 0) - at; }

uint source(uint i) {
    uint from = 0, stride = 1, rest = i;
    for (int axis = int(RANK) - 1; axis >= 0; axis--) {
        uint padded = push.axes[axis].padded;
        int size = int(push.axes[axis].size), at = int(rest % padded) - int(push.axes[axis].before);
        rest /= padded;
        if (at < 0) at = KIND == ROLL ? at + size : below(at);
        else if (at >= size) at = above(at, size);
        from += uint(at) * stride;
        stride *= uint(size);
    }
    return from;
}

float gradient(uint i) {
    float value = 0.0f;
    for (uint way = 0; way < WAYS; way++) {
        uint from = 0, stride = 1, rest = i, ways = way;
        bool is_there = true;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            int size = int(push.axes[axis].size), padded = int(push.axes[axis].padded), at = int(rest % uint(size));
            rest /= uint(size);
            if (padded != size) {
                if (ways % 3 == 1) {
                    at = below(at);
                    is_there = is_there && at < 0;
                } else if (ways % 3 == 2) {
                    at = above(at, size);
                    is_there = is_there && at >= size;
                }
                ways /= 3;
            }
            at += int(push.axes[axis].before);
            is_there = is_there && at >= 0 && at < padded;
            from += uint(at) * stride;
            stride *= uint(padded);
        }
        if (is_there) value += load(push.in_, from, TYPE);
    }
    return value;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        if (WAYS == 0) store_bits(push.out_, i, SIZE, load_bits(push.in_, source(i), SIZE));
        else store(push.out_, i, TYPE, gradient(i));
    }
}
