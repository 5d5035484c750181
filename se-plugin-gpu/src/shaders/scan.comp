#version 460
// Sums or products of all elements before, along an axis.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const bool IS_PRODUCT = false;
layout(constant_id = 2) const bool IS_EXCLUSIVE = false;
layout(constant_id = 3) const bool IS_REVERSE = false;
// Whether a workgroup computes a row, or else each thread.
layout(constant_id = 4) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Rows, their length, and the step along a row.
    uint n, len, inner;
} push;

// Elements in a turn of a loop: `EACH` in `src/kernels/scan.rs`.
const uint EACH = 8;

shared COMPUTE parts[256];

COMPUTE join(COMPUTE a, COMPUTE b) { return IS_PRODUCT ? TIMES(a, b) : PLUS(a, b); }

// Joins `sum` with some elements of a row.
COMPUTE scan(uint row, uint from, uint end, COMPUTE sum, bool is_stored) {
    uint first = row / push.inner * push.len * push.inner + row % push.inner;
    for (uint start = from; start < end; start += EACH)
        [[unroll]] for (uint j = 0; j < EACH; j++) {
            uint k = start + j;
            if (k >= end) break;
            uint at = first + (IS_REVERSE ? push.len - 1 - k : k) * push.inner;
            COMPUTE before = sum;
            sum = join(sum, load(push.in_, at, TYPE));
            if (is_stored) store(push.out_, at, TYPE, IS_EXCLUSIVE ? before : sum);
        }
    return sum;
}

void main() {
    const COMPUTE none = COMPUTE(IS_PRODUCT ? 1 : 0);
    if (!IS_WIDE) {
        uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
        for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) scan(i, 0, push.len, none, true);
        return;
    }
    // Each thread has a part of the row, and needs to know what is before it.
    uint lane = gl_LocalInvocationID.x, part = (push.len + 255) / 256;
    uint from = min(lane * part, push.len), end = min(from + part, push.len);
    for (uint i = gl_WorkGroupID.x; i < push.n; i += gl_NumWorkGroups.x) {
        parts[lane] = scan(i, from, end, none, false);
        barrier();
        for (uint distance = 1; distance < 256; distance *= 2) {
            COMPUTE before = lane < distance ? none : parts[lane - distance];
            barrier();
            parts[lane] = join(before, parts[lane]);
            barrier();
        }
        scan(i, from, end, lane == 0 ? none : parts[lane - 1], true);
        barrier();
    }
}
