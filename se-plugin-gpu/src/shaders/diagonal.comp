#version 460
// Diagonals of matrices, as rows: matrices made of them, with them, and theirs. A row that is shorter than the longest is at
// the left or at the right of its place.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint OP = 0;
// Whether the rows of the diagonals above and below the main one are at the left.
layout(constant_id = 2) const bool ABOVE_IS_LEFT = false;
layout(constant_id = 3) const bool BELOW_IS_LEFT = true;

// `OP`: the op in `src/kernels/diagonal.rs`.
const uint MAKE = 0, SET = 1, PART = 2;

layout(push_constant, scalar) uniform Push {
    // The diagonals or the matrix, the matrix that they are set in or the element of padding, and the result.
    uint64_t in_, other, out_;
    uint n, rows, columns;
    // The diagonals, by their distance above the main one, and their longest row.
    int lower, upper;
    uint longest;
} push;

// How far the row of a diagonal is from the left of its place.
uint start(int diagonal) {
    uint below = diagonal < 0 ? uint(-diagonal) : 0u, above = diagonal > 0 ? uint(diagonal) : 0u;
    uint len = min(push.rows - below, push.columns - above);
    bool is_left = (diagonal >= 0 && ABOVE_IS_LEFT) || (diagonal <= 0 && BELOW_IS_LEFT);
    return is_left ? 0 : push.longest - len;
}

uint64_t part(uint i) {
    uint diagonals = uint(push.upper - push.lower + 1), row = i / push.longest, place = i % push.longest;
    int diagonal = push.upper - int(row % diagonals);
    uint below = diagonal < 0 ? uint(-diagonal) : 0u, above = diagonal > 0 ? uint(diagonal) : 0u;
    uint len = min(push.rows - below, push.columns - above), first = start(diagonal);
    if (place < first || place - first >= len) return load_bits(push.other, 0, SIZE);
    uint at = (row / diagonals * push.rows + place - first + below) * push.columns + place - first + above;
    return load_bits(push.in_, at, SIZE);
}

uint64_t matrix(uint i) {
    uint row = i / push.columns % push.rows, column = i % push.columns, batch = i / push.columns / push.rows;
    int diagonal = int(column) - int(row);
    if (diagonal < push.lower || diagonal > push.upper) return load_bits(push.other, OP == MAKE ? 0 : i, SIZE);
    uint diagonals = uint(push.upper - push.lower + 1);
    uint at = (batch * diagonals + uint(push.upper - diagonal)) * push.longest + min(row, column) + start(diagonal);
    return load_bits(push.in_, at, SIZE);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) store_bits(push.out_, i, SIZE, OP == PART ? part(i) : matrix(i));
}
