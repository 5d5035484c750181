#version 460
// Products of matrices of doubles: a workgroup computes 32 x 32 results, each of its 16 x 16 threads 2 x 2. Sums are in the order of
// the elements.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool A_IS_TRANSPOSED = false;
layout(constant_id = 1) const bool B_IS_TRANSPOSED = false;

// The numbers are those of `matmul.comp`.
layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint rows, inner, columns;
    uint batches, a_batch, b_batch;
} push;

const uint TILE = 32;
// Elements of a sum between two barriers: `DEPTH_OF_DOUBLES` in `src/kernels/matrix.rs`.
const uint DEPTH = 16;
const uint PITCH = TILE + 1;

shared double a_tile[DEPTH * PITCH];
shared double b_tile[DEPTH * PITCH];

// Loads do not depend on a branch: one outside of the matrix reads its start.
double element(uint64_t matrix, uint index, bool is_inside) {
    double x = F64(matrix).v[is_inside ? index : 0];
    return is_inside ? x : 0.0lf;
}
double a_element(uint batch, uint i, uint k) {
    return element(push.a, batch * push.a_batch + (A_IS_TRANSPOSED ? k * push.rows + i : i * push.inner + k), i < push.rows && k < push.inner);
}
double b_element(uint batch, uint j, uint k) {
    return element(push.b, batch * push.b_batch + (B_IS_TRANSPOSED ? j * push.inner + k : k * push.columns + j), j < push.columns && k < push.inner);
}

void finish(uint batch, uint i, uint j, double sum) {
    if (i < push.rows && j < push.columns) F64(push.out_).v[(batch * push.rows + i) * push.columns + j] = sum;
}

void multiply(uint batch, uint row, uint column) {
    uint lane = gl_LocalInvocationIndex, y = lane / 16, x = lane % 16;
    double first = 0.0lf, second = 0.0lf, third = 0.0lf, fourth = 0.0lf;
    for (uint k = 0; k < push.inner; k += DEPTH) {
        // Neighbouring threads read neighbours in memory.
        for (uint half_ = 0; half_ < 2; half_++) {
            uint at = lane + half_ * 256;
            uint along = at % DEPTH, across = at / DEPTH, line = at % TILE, depth = at / TILE;
            if (A_IS_TRANSPOSED) a_tile[depth * PITCH + line] = a_element(batch, row + line, k + depth);
            else a_tile[along * PITCH + across] = a_element(batch, row + across, k + along);
            if (B_IS_TRANSPOSED) b_tile[along * PITCH + across] = b_element(batch, column + across, k + along);
            else b_tile[depth * PITCH + line] = b_element(batch, column + line, k + depth);
        }
        barrier();
        [[unroll]] for (uint depth = 0; depth < DEPTH; depth++) {
            double a = a_tile[depth * PITCH + y], a_next = a_tile[depth * PITCH + y + 16];
            double b = b_tile[depth * PITCH + x], b_next = b_tile[depth * PITCH + x + 16];
            first = fma(a, b, first);
            second = fma(a, b_next, second);
            third = fma(a_next, b, third);
            fourth = fma(a_next, b_next, fourth);
        }
        barrier();
    }
    finish(batch, row + y, column + x, first);
    finish(batch, row + y, column + x + 16, second);
    finish(batch, row + y + 16, column + x, third);
    finish(batch, row + y + 16, column + x + 16, fourth);
}

void main() {
    for (uint batch = gl_WorkGroupID.z; batch < push.batches; batch += gl_NumWorkGroups.z)
        for (uint row = gl_WorkGroupID.y * TILE; row < push.rows; row += gl_NumWorkGroups.y * TILE)
            for (uint column = gl_WorkGroupID.x * TILE; column < push.columns; column += gl_NumWorkGroups.x * TILE) multiply(batch, row, column);
}
