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
    // Rows of updates, from one to before another, with so many elements. One update for all has the steps 0.
    uint from, to, inner, row_step, step;
} push;

COMPUTE changed(COMPUTE x, COMPUTE update) {
    // Which of two NaN is, or is compared with, is as on the CPU.
    switch (OP) {
        case 0: return PLUS(x, update);
        case 1: return MINUS(x, update);
        case 2: return update;
        case 3: return TIMES(x, update);
        case 4: return update > x ? update : x;
        case 5: return update < x ? update : x;
        case 6: return update < x ? x : update;
        default: return x < update ? x : update;
    }
}

void change(uint row, uint column, uint place) {
    uint at = place * push.inner + column;
    COMPUTE x = load(push.target, at, TYPE);
    for (uint next = row; next < push.to;) {
        // lavapipe of Mesa 22.3 also loads for threads that have left the loop.
        uint other = min(next, push.to - 1);
        next = U32(push.links).v[other];
        COMPUTE update = load(push.updates, other * push.row_step + column * push.step, TYPE);
        x = rounded(changed(x, update), TYPE);
    }
    store(push.target, at, TYPE, x);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, n = (push.to - push.from) * push.inner;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step) {
        uint row = push.from + i / push.inner, place = U32(push.places).v[row];
        bool is_first = U32(push.heads).v[place == NONE ? 0 : place] == row;
        if (place != NONE && is_first) change(row, i % push.inner, place);
    }
}
