#version 460
// One of two elements, by a condition. All three are broadcast.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint RANK = 1;

// `goes_on` has a bit for each of the three, 0 if it is repeated along the axis.
struct Axis { uint len, goes_on; };
layout(push_constant, scalar) uniform Push {
    uint64_t condition, a, b, out_;
    uint n;
    Axis axes[11];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint condition = 0, a = 0, b = 0, rest = i;
        uint condition_step = 1, a_step = 1, b_step = 1;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            uint len = push.axes[axis].len, goes_on = push.axes[axis].goes_on;
            uint at = axis == 0 ? rest : rest % len;
            rest /= len;
            if ((goes_on & 1u) != 0u) { condition += at * condition_step; condition_step *= len; }
            if ((goes_on & 2u) != 0u) { a += at * a_step; a_step *= len; }
            if ((goes_on & 4u) != 0u) { b += at * b_step; b_step *= len; }
        }
        bool is = uint(U8(push.condition).v[condition]) != 0u;
        store_bits(push.out_, i, SIZE, load_bits(is ? push.a : push.b, is ? a : b, SIZE));
    }
}
