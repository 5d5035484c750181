#version 460
// Products of matrices.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool A_IS_TRANSPOSED = false;
layout(constant_id = 3) const bool B_IS_TRANSPOSED = false;

// Whether all tiles are full, along `k` too, and wide. Then sums are stored by the matrix units.
#ifdef FULL
const bool IS_FULL = true;
#else
const bool IS_FULL = false;
#endif

const bool A_ALONG_K = !A_IS_TRANSPOSED, B_ALONG_K = B_IS_TRANSPOSED;

layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint rows, inner, columns;
    // The matrices of a batch start at these multiples of its index in `a` and `b`: 0 where one is for all.
    uint batches, a_batch, b_batch;
} push;

uint a_index(uint batch, uint i, uint k) {
    if (!IS_FULL && i >= push.rows) return NONE;
    return batch * push.a_batch + (A_IS_TRANSPOSED ? k * push.rows + i : i * push.inner + k);
}

uint b_index(uint batch, uint j, uint k) {
    if (!IS_FULL && j >= push.columns) return NONE;
    return batch * push.b_batch + (B_IS_TRANSPOSED ? j * push.inner + k : k * push.columns + j);
}

uint out_index(uint batch, uint i, uint j) { return (batch * push.rows + i) * push.columns + j; }

void finish(uint batch, uint i, uint j, float sum) {
    if (i < push.rows && j < push.columns) store(push.out_, out_index(batch, i, j), TYPE, sum);
}

#include "products.glsl"

void main() { FOR_EACH_TILE(push.batches, push.rows, push.columns) multiply(batch, row, column, 0, push.inner); }
