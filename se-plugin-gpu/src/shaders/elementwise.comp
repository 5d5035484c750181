#version 460
// One result for each element of up to two inputs, which are broadcast.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint IN = 0;
layout(constant_id = 2) const uint OUT = 0;
layout(constant_id = 3) const uint RANK = 1;

struct Axis { uint len, a, b; };
layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint n;
    float number;
    Axis axes[8];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint a = 0, b = 0, rest = i;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            uint at = axis == 0 ? rest : rest % push.axes[axis].len;
            rest /= push.axes[axis].len;
            a += at * push.axes[axis].a;
            b += at * push.axes[axis].b;
        }
        // An op of one input has no second, and its address is that of the first.
        COMPUTE x = load(push.a, a, IN), y = load(push.b, b, IN);
        store(push.out_, i, OUT, result(OP, x, y, push.number, IN));
    }
}
