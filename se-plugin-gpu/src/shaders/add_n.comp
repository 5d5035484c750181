#version 460
// The sum of up to twelve tensors of one shape.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint COUNT = 2;
// Whether four neighbours are read at once. Only floats are.
layout(constant_id = 2) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t out_, parts[12];
    // Neighbours at once, so many times.
    uint n;
} push;

#ifdef IS_FLOAT
#include "neighbours.glsl"

void add(uint i) {
    vec4 sum = elements(push.parts[0], i * V);
    for (uint part = 1; part < COUNT; part++) sum = sum + elements(push.parts[part], i * V);
    store_elements(push.out_, i * V, TYPE, sum);
}
#else
void add(uint i) {
    COMPUTE sum = load(push.parts[0], i, TYPE);
    for (uint part = 1; part < COUNT; part++) sum = PLUS(sum, load(push.parts[part], i, TYPE));
    store(push.out_, i, TYPE, sum);
}
#endif

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) add(i);
}
