#version 460
// Rows of a variable are changed by rows of updates, in place. Of rows for the same place one thread takes all, in their order,
// so that the result is always the same.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const uint INDEX = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t variable, indices, updates;
    // So many rows of updates with so many elements, and of the variable so many rows. One update for all has the step 0.
    uint rows, inner, size, row_step, step;
} push;

int64_t index(uint row) { return INDEX == T_I32 ? int64_t(int(U32(push.indices).v[row])) : U64(push.indices).v[row]; }

void change(uint row, uint column) {
    int64_t place = index(row);
    if (place < 0 || place >= push.size) return;
    for (uint other = 0; other < row; other++)
        if (index(other) == place) return;
    uint at = uint(place) * push.inner + column;
    COMPUTE x = load(push.variable, at, TYPE);
    for (uint other = row; other < push.rows; other++) {
        if (index(other) != place) continue;
        COMPUTE update = load(push.updates, other * push.row_step + column * push.step, TYPE);
        x = OP == 0 ? x + update : OP == 1 ? x - update : update;
        x = rounded(x, TYPE);
    }
    store(push.variable, at, TYPE, x);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, n = push.rows * push.inner;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step) change(i / push.inner, i % push.inner);
}
