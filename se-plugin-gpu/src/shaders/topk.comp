#version 460
// The greatest `k` elements of each row, in falling order, and their places in the row; of equal ones the first is first. Each
// thread counts the elements before its own.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint INDEX_SIZE = 4;

layout(push_constant, scalar) uniform Push {
    uint64_t rows_, values, places;
    // So many rows of so many elements, and blocks of 256 elements in a row.
    uint rows, size, blocks, k;
} push;

// Comparisons in a turn of a loop: `EACH` in `src/kernels/topk.rs`.
const uint EACH = 16;

// Elements with which each thread compares its own.
shared COMPUTE tile[256];

// A NaN is before all numbers.
bool is_greater(COMPUTE a, COMPUTE b) {
#ifdef IS_FLOATING
    if (isnan(a) || isnan(b)) return !isnan(b);
#endif
    return a > b;
}

void main() {
    uint lane = gl_LocalInvocationID.x;
    for (uint unit = gl_WorkGroupID.x; unit < push.rows * push.blocks; unit += gl_NumWorkGroups.x) {
        uint row = unit / push.blocks, own = unit % push.blocks * 256 + lane, rank = 0;
        COMPUTE x = own < push.size ? load(push.rows_, row * push.size + own, TYPE) : COMPUTE(0);
        for (uint start = 0; start < push.size; start += 256) {
            if (start + lane < push.size) tile[lane] = load(push.rows_, row * push.size + start + lane, TYPE);
            barrier();
            uint count = min(256u, push.size - start);
            for (uint next = 0; next < count; next += EACH)
                [[unroll]] for (uint j = 0; j < EACH; j++) {
                    uint at = next + j;
                    COMPUTE other = tile[at];
                    bool is_before = is_greater(other, x) || (start + at < own && !is_greater(x, other));
                    if (at < count && is_before) rank++;
                }
            barrier();
        }
        if (own < push.size && rank < push.k) {
            store(push.values, row * push.k + rank, TYPE, x);
            store_bits(push.places, row * push.k + rank, INDEX_SIZE, uint64_t(own));
        }
    }
}
