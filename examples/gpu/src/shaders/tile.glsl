// Products of matrices, a tile at a time: a workgroup computes TILE x TILE results, each of its 16 x 16 threads EACH x EACH.

// Some cards have a slow `fma`, and a driver makes the fast instruction of this on its own. CUDA's header has another.
#ifndef MULTIPLY_ADD
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EACH = 2;

const uint TILE = 16 * EACH;
// Both tiles fit into the 16 KiB of shared memory that every card has.
const uint DEPTH = EACH > 4 ? 8 : 16;
// One more, so that neighbours along `k` are not in the same bank.
const uint PITCH = TILE + 1;

shared float a_tile[DEPTH * PITCH];
shared float b_tile[DEPTH * PITCH];

// The index along the side of the tile, and along `k`, of an element of it: neighbours in memory go to neighbouring threads.
uvec2 place(uint part, bool is_along_k) {
    return is_along_k ? uvec2(part / DEPTH, part % DEPTH) : uvec2(part % TILE, part / TILE);
}

float element(uint64_t matrix, uint index) { return index == NONE ? 0.0f : load(matrix, index, TYPE); }

void multiply(uint batch, uint row, uint column, uint from, uint to) {
    uint lane = gl_LocalInvocationIndex, y = lane / 16, x = lane % 16;
    float sums[EACH * EACH];
    for (uint at = 0; at < EACH * EACH; at++) sums[at] = 0.0f;
    for (uint k = from; k < to; k += DEPTH) {
        for (uint part = lane; part < TILE * DEPTH; part += 256) {
            uvec2 a = place(part, A_ALONG_K), b = place(part, B_ALONG_K);
            a_tile[a.y * PITCH + a.x] = element(push.a, k + a.y < to ? a_index(batch, row + a.x, k + a.y) : NONE);
            b_tile[b.y * PITCH + b.x] = element(push.b, k + b.y < to ? b_index(batch, column + b.x, k + b.y) : NONE);
        }
        barrier();
        for (uint depth = 0; depth < DEPTH; depth++)
            for (uint i = 0; i < EACH; i++)
                for (uint j = 0; j < EACH; j++)
                    sums[i * EACH + j] =
                        MULTIPLY_ADD(a_tile[depth * PITCH + y + i * 16], b_tile[depth * PITCH + x + j * 16], sums[i * EACH + j]);
        barrier();
    }
    for (uint i = 0; i < EACH; i++)
        for (uint j = 0; j < EACH; j++) finish(batch, row + y + i * 16, column + x + j * 16, sums[i * EACH + j]);
}
