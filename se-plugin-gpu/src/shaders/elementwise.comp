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
// Whether four results are computed at once, of floats only: along the last axis both inputs have neighbours that are aligned,
// or one element for all.
layout(constant_id = 4) const bool IS_WIDE = false;

#include "broadcast.glsl"

#ifdef IS_FLOAT
vec4 four(uint64_t at, uint i, uint stride) { return stride == 0 ? vec4(load(at, i, IN)) : load_four(at, i / 4, IN); }
#endif

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    // An op of one input has no second, and its address is that of the first.
#ifdef IS_FLOAT
    if (IS_WIDE) {
        for (uint i = gl_GlobalInvocationID.x; i < push.n / 4; i += step) {
            uvec2 at = places(i * 4);
            vec4 x = four(push.a, at.x, push.axes[RANK - 1].a), y = four(push.b, at.y, push.axes[RANK - 1].b);
            // The driver decides whether to unroll it: an op may be long.
            for (uint j = 0; j < 4; j++) x[j] = result(OP, x[j], y[j], push.number, IN);
            store_four(push.out_, i, OUT, x);
        }
        return;
    }
#endif
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uvec2 at = places(i);
        COMPUTE x = load(push.a, at.x, IN), y = load(push.b, at.y, IN);
        store(push.out_, i, OUT, result(OP, x, y, push.number, IN));
    }
}
