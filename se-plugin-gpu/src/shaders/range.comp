#version 460
// Numbers from a start on, with the same step.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    // A float is in the lower half.
    uint64_t start, delta, out_;
    uint n;
} push;

COMPUTE number(uint64_t bits) {
#ifdef DOUBLE
    return uint64BitsToDouble(bits);
#else
#ifdef IS_FLOAT
    return uintBitsToFloat(uint(bits));
#else
    return COMPUTE(bits);
#endif
#endif
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        precise COMPUTE part = rounded(TIMES(rounded(COMPUTE(i), TYPE), number(push.delta)), TYPE);
        store(push.out_, i, TYPE, PLUS(number(push.start), part));
    }
}
