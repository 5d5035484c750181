#version 460
// How often each number is in a row, or the sums of the weights at its places. A thread has a number, of which it takes a part of the row.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint INDEX = 0;
layout(constant_id = 2) const bool HAS_WEIGHTS = false;
// Whether only what is there counts, as 1.
layout(constant_id = 3) const bool IS_BINARY = false;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, weights, out_;
    // Tiles of 256 numbers of all rows, and of one; the numbers, the length of a row, and of a part of it.
    uint n, tiles, bins, len, part;
} push;

shared int places[256];
shared COMPUTE values[256];

// A number that is not counted is -1.
int place(uint i) {
    if (INDEX == T_I32) return int(U32(push.in_).v[i]);
    int64_t x = U64(push.in_).v[i];
    return x >= 0 && x < int64_t(push.bins) ? int(x) : -1;
}

void main() {
    uint lane = gl_LocalInvocationID.x, start = gl_WorkGroupID.y * push.part, end = min(start + push.part, push.len);
    for (uint tile = gl_WorkGroupID.x; tile < push.n; tile += gl_NumWorkGroups.x) {
        uint row = tile / push.tiles, bin = tile % push.tiles * 256 + lane;
        COMPUTE sum = COMPUTE(0);
        for (uint from = start; from < end; from += 256) {
            uint i = row * push.len + min(from + lane, end - 1);
            places[lane] = place(i);
            values[lane] = COMPUTE(1);
            if (HAS_WEIGHTS) values[lane] = load(push.weights, i, TYPE);
            barrier();
            uint count = min(256u, end - from);
            for (uint k = 0; k < count; k++) if (places[k] == int(bin)) sum = IS_BINARY ? COMPUTE(1) : PLUS(sum, values[k]);
            barrier();
        }
        if (bin < push.bins) store(push.out_, (gl_WorkGroupID.y * (push.n / push.tiles) + row) * push.bins + bin, TYPE, sum);
    }
}
