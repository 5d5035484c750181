#version 460
// Lists of the rows that have the same place, in their order: for each row the next, or `n` for none, and HEAD for the first.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "links.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint64_t places, links;
    uint n;
} push;

// Places of 256 rows, with which each thread compares that of its own row.
shared uint tile[256];

void main() {
    uint lane = gl_LocalInvocationID.x;
    for (uint first = gl_WorkGroupID.x * 256; first < push.n; first += gl_NumWorkGroups.x * 256) {
        uint row = first + lane, place = row < push.n ? U32(push.places).v[row] : NONE, next = push.n;
        bool is_head = place != NONE;
        for (uint start = 0; start < push.n; start += 256) {
            tile[lane] = start + lane < push.n ? U32(push.places).v[start + lane] : NONE;
            barrier();
            for (uint at = 0; at < 256; at++) {
                // NONE is no row.
                uint other = tile[at] == place ? start + at : NONE;
                is_head = is_head && other >= row;
                next = min(next, other > row ? other : NONE);
            }
            barrier();
        }
        if (row < push.n) U32(push.links).v[row] = next | (is_head ? HEAD : 0u);
    }
}
