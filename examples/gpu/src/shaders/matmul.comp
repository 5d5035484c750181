#version 460
// Products of matrices: a workgroup computes a tile of 32 x 32, each thread 2 x 2 of it.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const bool A_IS_TRANSPOSED = false;
layout(constant_id = 2) const bool B_IS_TRANSPOSED = false;

const uint TILE = 32;

layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint rows, inner, columns;
    // The matrices of a batch, whose index is `gl_WorkGroupID.z`, start at these multiples of it in `a` and `b`: 0
    // where one is for all.
    uint a_batch, b_batch;
} push;

shared float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];

void main() {
    uvec2 local = gl_LocalInvocationID.xy;
    uint row = gl_WorkGroupID.y * TILE, column = gl_WorkGroupID.x * TILE, batch = gl_WorkGroupID.z;
    uint a_start = batch * push.a_batch, b_start = batch * push.b_batch;
    float sums[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
    for (uint k = 0; k < push.inner; k += TILE) {
        for (uint part = 0; part < 4; part++) {
            uint x = local.x + part % 2 * 16, y = local.y + part / 2 * 16;
            // Along `x` memory is read in order.
            uint i = A_IS_TRANSPOSED ? row + x : row + y, at = A_IS_TRANSPOSED ? k + y : k + x;
            float value = 0.0;
            if (i < push.rows && at < push.inner)
                value = load(push.a, a_start + (A_IS_TRANSPOSED ? at * push.rows + i : i * push.inner + at), TYPE);
            a_tile[i - row][at - k] = value;
            uint j = B_IS_TRANSPOSED ? column + y : column + x;
            at = B_IS_TRANSPOSED ? k + x : k + y;
            value = 0.0;
            if (j < push.columns && at < push.inner)
                value = load(push.b, b_start + (B_IS_TRANSPOSED ? j * push.inner + at : at * push.columns + j), TYPE);
            b_tile[at - k][j - column] = value;
        }
        barrier();
        for (uint at = 0; at < TILE; at++)
            for (uint y = 0; y < 2; y++)
                for (uint x = 0; x < 2; x++)
                    sums[y][x] += a_tile[local.y + y * 16][at] * b_tile[at][local.x + x * 16];
        barrier();
    }
    for (uint y = 0; y < 2; y++)
        for (uint x = 0; x < 2; x++) {
            uint i = row + local.y + y * 16, j = column + local.x + x * 16;
            if (i < push.rows && j < push.columns)
                store(push.out_, (batch * push.rows + i) * push.columns + j, TYPE, sums[y][x]);
        }
}
