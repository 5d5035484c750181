// Products of 16-bit floats by the matrix units of a GPU, which add in 32 bits: a workgroup computes TILE x TILE results.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EACH = 8;
// Whether eight neighbours in memory, from a multiple of eight on, are all in the matrix or all outside, and are aligned.
layout(constant_id = 5) const bool IS_WIDE = false;
// A subgroup multiplies M x K elements by K x N.
layout(constant_id = 6) const uint M = 16;
layout(constant_id = 7) const uint N = 16;
layout(constant_id = 8) const uint K = 16;
layout(constant_id = 9) const uint SUBGROUP = 32;

const uint TILE = 16 * EACH, DEPTH = 32;
// How subgroups share a tile, and how many products of the GPU make the part of one.
const uint SUBGROUPS = 256 / SUBGROUP;
const uint SUBGROUPS_DOWN = SUBGROUPS > 8 ? 4 : 2, SUBGROUPS_ACROSS = SUBGROUPS / SUBGROUPS_DOWN;
const uint ROWS = TILE / SUBGROUPS_DOWN, COLUMNS = TILE / SUBGROUPS_ACROSS;
const uint DOWN = ROWS / M, ACROSS = COLUMNS / N;

// A tile of each matrix as it lies in memory, eight elements at a time. The next line is in other banks.
const uint A_WIDTH = (A_ALONG_K ? DEPTH : TILE) / 8, B_WIDTH = (B_ALONG_K ? DEPTH : TILE) / 8;
const uint A_PITCH = A_WIDTH + 1, B_PITCH = B_WIDTH + 1;
const int A_LAYOUT = A_ALONG_K ? gl_CooperativeMatrixLayoutRowMajor : gl_CooperativeMatrixLayoutColumnMajor;
const int B_LAYOUT = B_ALONG_K ? gl_CooperativeMatrixLayoutColumnMajor : gl_CooperativeMatrixLayoutRowMajor;
// The larger of 128 lines along `k`, and 32 across.
const uint MOST_VECTORS = 128 * (32 / 8 + 1);
shared uvec4 a_tile[MOST_VECTORS];
shared uvec4 b_tile[MOST_VECTORS];
#ifndef FULL
shared float products[SUBGROUPS * M * N];
#endif

// What an invocation brings.
const uint VECTORS = TILE * DEPTH / 8 / 256;
uvec4 a_next[VECTORS], b_next[VECTORS];

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vectors { uvec4 v[]; };
#ifdef FULL
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Halves { float16_t v[]; };
#endif

// Loads do not depend on a branch, so that several are under way: one outside of the matrix reads its start.
uvec4 vector(uint64_t matrix, uint index) {
    uvec4 eight = Vectors(matrix).v[(index == NONE ? 0 : index) / 8];
    return index == NONE ? uvec4(0) : eight;
}
uint bits(uint64_t matrix, uint index) {
    uint x = uint(U16(matrix).v[index == NONE ? 0 : index]);
    return index == NONE ? 0u : x;
}

// Line and `k` of the first element of a vector of a tile.
uvec2 place(uint part, uint width, bool is_along_k) {
    uint x = part % width * 8, y = part / width;
    return is_along_k ? uvec2(y, x) : uvec2(x, y);
}

#ifdef FULL
#define EIGHT(name, matrix, index, is_along_k) \
    uvec4 name(uint batch, uint line, uint k, uint to) { return Vectors(matrix).v[index(batch, line, k) / 8]; }
#else
#define EIGHT(name, matrix, index, is_along_k) \
    uvec4 name(uint batch, uint line, uint k, uint to) { \
        if (IS_WIDE) return vector(matrix, k < to ? index(batch, line, k) : NONE); \
        uvec4 eight = uvec4(0); \
        [[unroll]] for (uint at = 0; at < 8; at++) { \
            uint other = is_along_k ? line : line + at, depth = is_along_k ? k + at : k; \
            eight[at / 2] |= bits(matrix, depth < to ? index(batch, other, depth) : NONE) << (16 * (at % 2)); \
        } \
        return eight; \
    }
#endif
EIGHT(a_eight, push.a, a_index, A_ALONG_K)
EIGHT(b_eight, push.b, b_index, B_ALONG_K)

void fetch(uint batch, uint row, uint column, uint k, uint to) {
    [[unroll]] for (uint at = 0; at < VECTORS; at++) {
        uint part = gl_LocalInvocationIndex + at * 256;
        uvec2 a = place(part, A_WIDTH, A_ALONG_K), b = place(part, B_WIDTH, B_ALONG_K);
        a_next[at] = a_eight(batch, row + a.x, k + a.y, to);
        b_next[at] = b_eight(batch, column + b.x, k + b.y, to);
    }
}

// Loops are unrolled: where an index of a matrix is left, drivers put the matrices into memory.
void multiply(uint batch, uint row, uint column, uint from, uint to) {
    uint down = gl_SubgroupID / SUBGROUPS_ACROSS * ROWS, right = gl_SubgroupID % SUBGROUPS_ACROSS * COLUMNS;
    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[DOWN * ACROSS];
    [[unroll]] for (uint at = 0; at < DOWN * ACROSS; at++)
        sums[at] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0f);
    if (from < to) fetch(batch, row, column, from, to);
    for (uint k = from; k < to; k += DEPTH) {
        [[unroll]] for (uint at = 0; at < VECTORS; at++) {
            uint part = gl_LocalInvocationIndex + at * 256;
            a_tile[part / A_WIDTH * A_PITCH + part % A_WIDTH] = a_next[at];
            b_tile[part / B_WIDTH * B_PITCH + part % B_WIDTH] = b_next[at];
        }
        barrier();
        // While these are multiplied.
        if (k + DEPTH < to) fetch(batch, row, column, k + DEPTH, to);
        [[unroll]] for (uint depth = 0; depth < DEPTH; depth += K) {
            coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b[ACROSS];
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                uint line = right + j * N;
                coopMatLoad(b[j], b_tile, B_ALONG_K ? line * B_PITCH + depth / 8 : depth * B_PITCH + line / 8, B_PITCH, B_LAYOUT);
            }
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                uint line = down + i * M;
                coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a;
                coopMatLoad(a, a_tile, A_ALONG_K ? line * A_PITCH + depth / 8 : depth * A_PITCH + line / 8, A_PITCH, A_LAYOUT);
                [[unroll]] for (uint j = 0; j < ACROSS; j++) sums[i * ACROSS + j] = coopMatMulAdd(a, b[j], sums[i * ACROSS + j]);
            }
        }
        barrier();
    }
#ifdef FULL
    // An element at a time takes a GPU of NVIDIA longer than the products.
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            coopmat<float16_t, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> rounded =
                coopmat<float16_t, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(sums[i * ACROSS + j]);
            uint first = out_index(batch, row + down + i * M, column + right + j * N);
            coopMatStore(rounded, Halves(push.out_).v, first, push.columns, gl_CooperativeMatrixLayoutRowMajor);
        }
#else
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            coopMatStore(sums[i * ACROSS + j], products, gl_SubgroupID * M * N, N, gl_CooperativeMatrixLayoutRowMajor);
            subgroupBarrier();
            for (uint at = gl_SubgroupInvocationID; at < M * N; at += SUBGROUP)
                finish(batch, row + down + i * M + at / N, column + right + j * N + at % N, products[gl_SubgroupID * M * N + at]);
            subgroupBarrier();
        }
#endif
}
