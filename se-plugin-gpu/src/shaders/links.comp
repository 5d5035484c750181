#version 460
// Lists of the rows that have the same place, in their order: for each row the next, or NONE, and for each place the first, which
// is NONE before. One workgroup goes from the last of some rows to the first, 256 at a time.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
// What one thread writes and another reads.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer C32 { uint v[]; };

layout(push_constant, scalar) uniform Push {
    uint64_t places, links, heads;
    // The rows: from one that is a multiple of 256 to before another.
    uint from, to;
} push;

shared uint tile[256];

void main() {
    uint lane = gl_LocalInvocationID.x;
    for (uint end = (push.to + 255) / 256 * 256; end > push.from; end -= 256) {
        uint start = end - 256, row = start + lane, place = row < push.to ? U32(push.places).v[row] : NONE, next = NONE;
        bool is_first = place != NONE;
        tile[lane] = place;
        barrier();
        for (uint at = 0; at < 256; at++) {
            bool is_same = tile[at] == place;
            is_first = is_first && !(is_same && at < lane);
            next = min(next, is_same && at > lane ? start + at : NONE);
        }
        if (place != NONE && next == NONE) next = C32(push.heads).v[place];
        if (row < push.to) U32(push.links).v[row] = place == NONE ? NONE : next;
        // All have read the heads of the rows behind.
        memoryBarrierBuffer();
        barrier();
        if (is_first) C32(push.heads).v[place] = row;
        memoryBarrierBuffer();
        barrier();
    }
}
