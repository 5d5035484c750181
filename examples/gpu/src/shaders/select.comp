#version 460
// One of two elements, by a condition. All three are broadcast.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint RANK = 1;

struct Axis { uint len, condition, a, b; };
layout(push_constant, scalar) uniform Push {
    uint64_t condition, a, b, out_;
    uint n;
    Axis axes[5];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint condition = 0, a = 0, b = 0, rest = i;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            uint at = axis == 0 ? rest : rest % push.axes[axis].len;
            rest /= push.axes[axis].len;
            condition += at * push.axes[axis].condition;
            a += at * push.axes[axis].a;
            b += at * push.axes[axis].b;
        }
        bool is = uint(U8(push.condition).v[condition]) != 0u;
        store_bits(push.out_, i, SIZE, load_bits(is ? push.a : push.b, is ? a : b, SIZE));
    }
}
