// Products of matrices, a tile at a time: a workgroup computes TILE x TILE results, each of its 16 x 16 threads EACH x EACH.

// Some GPUs have a slow `fma`, and a driver makes the fast instruction of this on its own. CUDA's header has another.
#ifndef MULTIPLY_ADD
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EACH = 2;
// Whether four neighbours in memory, from a multiple of four on, are all in the matrix or all outside, and are aligned.
layout(constant_id = 5) const bool IS_WIDE = false;

const uint TILE = 16 * EACH;
// Each thread brings four neighbours of each matrix. Both tiles fit into the 16 KiB of shared memory that every GPU has.
const uint DEPTH = 64 / EACH;
// How many of those are multiplied in a turn of a loop: `TURN` in `src/kernels/matrix.rs`.
const uint TURN = 8;
// A few more, so that neighbours along `k` are not in the same bank.
const uint PITCH = TILE + 4;

shared float a_tile[DEPTH * PITCH];
shared float b_tile[DEPTH * PITCH];

// What this thread brings: the first line, and `k`, of its four in a tile.
uvec2 place(bool is_along_k) {
    uint lane = gl_LocalInvocationIndex;
    return is_along_k ? uvec2(lane / (DEPTH / 4), lane % (DEPTH / 4) * 4) : uvec2(lane % (TILE / 4) * 4, lane / (TILE / 4));
}

// Loads do not depend on a branch, so that several are under way: one outside of the matrix reads its start.
float element(uint64_t matrix, uint index) {
    float x = load(matrix, index == NONE ? 0 : index, TYPE);
    return index == NONE ? 0.0f : x;
}
vec4 elements_from(uint64_t matrix, uint index) {
    vec4 four = load_four(matrix, (index == NONE ? 0 : index) / 4, TYPE);
    return index == NONE ? vec4(0.0f) : four;
}

// `index` is that of the first, `other_index` that of the element `depth` of the line `other`.
#define FOUR(matrix, index, other_index, is_along_k) \
    if (IS_WIDE) return elements_from(matrix, k < to ? index : NONE); \
    vec4 four; \
    for (uint at = 0; at < 4; at++) { \
        uint other = is_along_k ? line : line + at, depth = is_along_k ? k + at : k; \
        four[at] = element(matrix, depth < to ? other_index : NONE); \
    } \
    return four;

vec4 a_four(uint batch, uint line, uint k, uint to) { FOUR(push.a, a_index(batch, line, k), a_index(batch, other, depth), A_ALONG_K) }
vec4 b_four(uint batch, uint line, uint k, uint to) { FOUR(push.b, b_index(batch, line, k), b_index(batch, other, depth), B_ALONG_K) }

// Where one of the four is in a tile.
uint spot(uvec2 place, uint at, bool is_along_k) { return place.y * PITCH + place.x + at * (is_along_k ? PITCH : 1); }

// The EACH lines of a thread: up to four neighbours, and as many 64 further on.
uint line_of(uint thread, uint i) { return EACH == 2 ? thread * 2 + i : i / 4 * 64 + thread * 4 + i % 4; }

// Loops over sums are unrolled: where an index of them is left, drivers put them into memory.
void multiply(uint batch, uint row, uint column, uint from, uint to) {
    uint y = gl_LocalInvocationIndex / 16, x = gl_LocalInvocationIndex % 16;
    uvec2 a_place = place(A_ALONG_K), b_place = place(B_ALONG_K);
    float sums[EACH * EACH], a[EACH], b[EACH];
    [[unroll]] for (uint at = 0; at < EACH * EACH; at++) sums[at] = 0.0f;
    for (uint k = from; from < to; k += DEPTH) {
        // They arrive while the tiles before are multiplied.
        vec4 a_next = a_four(batch, row + a_place.x, k + a_place.y, to);
        vec4 b_next = b_four(batch, column + b_place.x, k + b_place.y, to);
        if (k > from) {
            // A constant for large tiles, of which drivers unroll the loop. Small matrices may end before.
            uint depths = EACH > 2 ? DEPTH : min(DEPTH, to + DEPTH - k);
            for (uint next = 0; next < depths; next += TURN)
                // Behind the end both tiles are zeros.
                [[unroll]] for (uint k_of_turn = 0; k_of_turn < TURN; k_of_turn++) {
                    uint depth = next + k_of_turn;
                    [[unroll]] for (uint i = 0; i < EACH; i++) a[i] = a_tile[depth * PITCH + line_of(y, i)];
                    [[unroll]] for (uint j = 0; j < EACH; j++) b[j] = b_tile[depth * PITCH + line_of(x, j)];
                    [[unroll]] for (uint i = 0; i < EACH; i++)
                        [[unroll]] for (uint j = 0; j < EACH; j++) sums[i * EACH + j] = MULTIPLY_ADD(a[i], b[j], sums[i * EACH + j]);
                }
        }
        if (k >= to) break;
        barrier();
        [[unroll]] for (uint at = 0; at < 4; at++) a_tile[spot(a_place, at, A_ALONG_K)] = a_next[at];
        [[unroll]] for (uint at = 0; at < 4; at++) b_tile[spot(b_place, at, B_ALONG_K)] = b_next[at];
        barrier();
    }
    [[unroll]] for (uint i = 0; i < EACH; i++)
        [[unroll]] for (uint j = 0; j < EACH; j++) finish(batch, row + line_of(y, i), column + line_of(x, j), sums[i * EACH + j]);
}
