#version 460
// Rows of a tensor are changed by rows of updates, in place. One thread takes all updates of an element, in their order, so that
// the result is always the same.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    // Of each row of updates its place and the next row for it, and of each place the first row: see `links.comp`.
    uint64_t target, updates, places, links, heads;
    // So many rows of updates with so many elements. One update for all has the steps 0.
    uint rows, inner, row_step, step;
} push;

COMPUTE changed(COMPUTE x, COMPUTE update) {
#ifdef IS_FLOAT
    if (OP >= 4 && isnan(update)) return update;
#endif
    switch (OP) {
        case 0: return x + update;
        case 1: return x - update;
        case 2: return update;
        case 3: return x * update;
        case 4: return update > x ? update : x;
        default: return update < x ? update : x;
    }
}

void change(uint row, uint column, uint place) {
    uint at = place * push.inner + column;
    COMPUTE x = load(push.target, at, TYPE);
    for (uint next = row; next < push.rows;) {
        // lavapipe of Mesa 22.3 also loads for threads that have left the loop.
        uint other = min(next, push.rows - 1);
        next = U32(push.links).v[other];
        COMPUTE update = load(push.updates, other * push.row_step + column * push.step, TYPE);
        x = rounded(changed(x, update), TYPE);
    }
    store(push.target, at, TYPE, x);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, n = push.rows * push.inner;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step) {
        uint row = i / push.inner, place = U32(push.places).v[row];
        if (place != NONE) {
            if (U32(push.heads).v[place] == row) change(row, i % push.inner, place);
        }
    }
}
