#version 460
// Attention, a tile of scores at a time, and its gradients: scores are never written to memory. By T. Dao and others, "FlashAttention" (2022).
//
// A workgroup computes ROWS rows of a result, and up to 128 of their elements. It loops over tiles of ROWS x COLUMNS scores: a tile is the products
// of lines of two tensors, and what becomes of it is multiplied by lines of a third one. Each of 16 x 16 threads has some of each.
//
// Rows behind the last one are computed too, and not stored. PoCL 3.1 takes a condition on rows, which does not change within the loop, for the same
// in all threads.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"

// As in `tile.glsl`.
#ifndef MULTIPLY_ADD
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
// Whether four neighbours are read at once: lines have a multiple of four, and all tensors are aligned.
layout(constant_id = 2) const bool IS_WIDE = false;
// The rows of a tile, and the elements of a row of the result, divided by 16.
layout(constant_id = 3) const uint LINES = 1;
layout(constant_id = 4) const uint EACH = 1;
// Whether tensors are [batch, head, line, element], or else [batch, line, head, element].
layout(constant_id = 5) const bool HEADS_FIRST = false;
// The axes of the mask and of what is added to scores, and HAS if there are such tensors: `place`. A row sees no later columns if CAUSAL.
layout(constant_id = 6) const uint MASK = 0;
layout(constant_id = 7) const uint BIAS = 0;
layout(constant_id = 8) const uint BIAS_TYPE = 0;

layout(push_constant, scalar) uniform Push {
    // `slopes` has the sum of the products of each row's result with its gradient.
    uint64_t query, key, value, mask, bias, out_, statistics, dout, slopes, first, second;
    uint batches, heads, rows, columns, depth, width;
    float scale, masked;
} push;

// The gradient of the query, and those of key and value, whose rows are the keys.
const uint ATTENTION = 0, OF_QUERY = 1;

const uint HAS = 16, CAUSAL = 32;

const uint ROWS = 16 * LINES, COLUMNS = 32;
// How many elements of a line are multiplied in a turn, and how many lines of the third tensor.
const uint CHUNK = 16, DEEP = 8;
// A few more, so that neighbours are not in the same bank.
const uint A_PITCH = ROWS + 4, B_PITCH = COLUMNS + 4, P_PITCH = COLUMNS + 1, C_PITCH = 16 * EACH + 4;
// Lines of the first tensor are from 0 on, of the second one behind them, and later the tile is there, with lines of the third one behind it.
const uint B_AT = CHUNK * A_PITCH, B_END = B_AT + CHUNK * B_PITCH, P_END = ROWS * P_PITCH, C_AT = P_END > B_END ? P_END : B_END;
// The threads that compute a row's softmax.
const uint LANES = 16 / LINES;

shared float area[C_AT + DEEP * C_PITCH];
shared float part[256];
// The largest score of each row and the sum so far, and what earlier sums are multiplied by.
shared float row_most[ROWS];
shared float row_sum[ROWS];
shared float row_factor[ROWS];

// The lines of a head.
struct Lines {
    uint64_t tensor;
    uint start, step, count, depth;
};

Lines lines(uint64_t tensor, uint batch, uint head, uint count, uint depth) {
    Lines of;
    of.tensor = tensor;
    of.start = (batch * push.heads * count + head * (HEADS_FIRST ? count : 1)) * depth;
    of.step = HEADS_FIRST ? depth : push.heads * depth;
    of.count = count;
    of.depth = depth;
    return of;
}

// Four elements of a line, and zeros outside of it. Loads do not depend on a branch.
vec4 four_of(Lines of, uint line, uint from) {
    uint first = of.start + line * of.step + from;
    if (IS_WIDE) {
        bool is_there = line < of.count && from < of.depth;
        vec4 four = load_four(of.tensor, (is_there ? first : of.start) / 4, TYPE);
        return is_there ? four : vec4(0.0f);
    }
    vec4 four;
    for (uint at = 0; at < 4; at++) {
        bool is_there = line < of.count && from + at < of.depth;
        float x = load(of.tensor, is_there ? first + at : of.start, TYPE);
        four[at] = is_there ? x : 0.0f;
    }
    return four;
}

// Brings elements of some lines, those of each in a column of `area`.
void bring(Lines of, uint first, uint count, uint from, uint at, uint pitch) {
    uint lane = gl_LocalInvocationID.x, line = lane / (CHUNK / 4), element = lane % (CHUNK / 4) * 4;
    if (line >= count) return;
    vec4 four = four_of(of, first + line, from + element);
    [[unroll]] for (uint next = 0; next < 4; next++) area[at + (element + next) * pitch + line] = four[next];
}

// Brings elements of DEEP lines, those of each in a row.
void bring_rows(Lines of, uint first, uint from) {
    uint lane = gl_LocalInvocationID.x, line = lane / (4 * EACH), element = lane % (4 * EACH) * 4;
    if (line >= DEEP) return;
    vec4 four = four_of(of, first + line, from + element);
    [[unroll]] for (uint next = 0; next < 4; next++) area[C_AT + line * C_PITCH + element + next] = four[next];
}

// The products of ROWS lines of `a` and COLUMNS lines of `b`: `results`.
#define PRODUCTS(results, a, a_first, b, b_first) \
    [[unroll]] for (uint at = 0; at < LINES * 2; at++) results[at] = 0.0f; \
    for (uint from = 0; from < a.depth; from += CHUNK) { \
        barrier(); \
        bring(a, a_first, ROWS, from, 0, A_PITCH); \
        bring(b, b_first, COLUMNS, from, B_AT, B_PITCH); \
        barrier(); \
        [[unroll]] for (uint k = 0; k < CHUNK; k++) { \
            [[unroll]] for (uint i = 0; i < LINES; i++) left[i] = area[k * A_PITCH + y * LINES + i]; \
            [[unroll]] for (uint j = 0; j < 2; j++) { \
                float right = area[B_AT + k * B_PITCH + x + 16 * j]; \
                [[unroll]] for (uint i = 0; i < LINES; i++) results[i * 2 + j] = MULTIPLY_ADD(left[i], right, results[i * 2 + j]); \
            } \
        } \
    } \
    barrier();

// Adds the products of the tile with lines of `c`, their elements from `column` on, to `sums`.
#define ADD_PRODUCTS(sums, c, c_first) \
    for (uint from = 0, end = column < c.depth ? min(COLUMNS, c.count - c_first) : 0; from < end; from += DEEP) { \
        bring_rows(c, c_first + from, column); \
        barrier(); \
        [[unroll]] for (uint k = 0; k < DEEP; k++) { \
            [[unroll]] for (uint i = 0; i < LINES; i++) left[i] = area[(y * LINES + i) * P_PITCH + from + k]; \
            [[unroll]] for (uint j = 0; j < EACH; j++) { \
                float right = area[C_AT + k * C_PITCH + x + 16 * j]; \
                [[unroll]] for (uint i = 0; i < LINES; i++) sums[i * EACH + j] = MULTIPLY_ADD(left[i], right, sums[i * EACH + j]); \
            } \
        } \
        barrier(); \
    }

// Stores rows of a result, times a factor of each.
#define STORE(sums, of, factor) \
    [[unroll]] for (uint i = 0; i < LINES; i++) \
        [[unroll]] for (uint j = 0; j < EACH; j++) { \
            uint line = first + y * LINES + i, element = column + x + 16 * j; \
            if (line < of.count && element < of.depth) \
                store(of.tensor, of.start + line * of.step + element, TYPE, sums[i * EACH + j] * (factor)); \
        }

// The index in a tensor that is broadcast to all scores. Bits of `axes` tell which axes it has: batch, head, row and column.
uint place(uint axes, uint batch, uint head, uint row, uint column) {
    uint at = (axes & 1u) != 0u ? batch : 0;
    if ((axes & 2u) != 0u) at = at * push.heads + head;
    if ((axes & 4u) != 0u) at = at * push.rows + row;
    if ((axes & 8u) != 0u) at = at * push.columns + column;
    return at;
}

bool is_masked(uint batch, uint head, uint row, uint column) {
    if ((MASK & CAUSAL) != 0u && column > row) return true;
    return (MASK & HAS) != 0u && uint(U8(push.mask).v[place(MASK, batch, head, row, column)]) == 0u;
}

float score(float product, uint batch, uint head, uint row, uint column) {
    float x = product * push.scale;
    if ((BIAS & HAS) != 0u) x = x + load(push.bias, place(BIAS, batch, head, row, column), BIAS_TYPE);
    return is_masked(batch, head, row, column) ? push.masked : x;
}

void attention(uint batch, uint head, uint first, uint column) {
    uint lane = gl_LocalInvocationID.x, y = lane / 16, x = lane % 16, row = lane / LANES, own = lane % LANES;
    Lines query = lines(push.query, batch, head, push.rows, push.depth), key = lines(push.key, batch, head, push.columns, push.depth);
    Lines value = lines(push.value, batch, head, push.columns, push.width), result = lines(push.out_, batch, head, push.rows, push.width);
    float sums[LINES * EACH], scores[LINES * 2], left[LINES];
    [[unroll]] for (uint at = 0; at < LINES * EACH; at++) sums[at] = 0.0f;
    // Of the tile before.
    barrier();
    if (own == 0) {
        row_most[row] = -INFINITY;
        row_sum[row] = 0.0f;
    }
    for (uint start = 0; start < push.columns; start += COLUMNS) {
        PRODUCTS(scores, query, first, key, start)
        [[unroll]] for (uint i = 0; i < LINES; i++)
            [[unroll]] for (uint j = 0; j < 2; j++) {
                uint line = y * LINES + i, to = x + 16 * j;
                float of = score(scores[i * 2 + j], batch, head, min(first + line, push.rows - 1), min(start + to, push.columns - 1));
                area[line * P_PITCH + to] = start + to < push.columns ? of : -INFINITY;
            }
        barrier();
        float most = -INFINITY, old = row_most[row], sum = 0.0f;
        for (uint at = own; at < COLUMNS; at += LANES) most = max(most, area[row * P_PITCH + at]);
        part[lane] = most;
        barrier();
        most = old;
        for (uint at = 0; at < LANES; at++) most = max(most, part[row * LANES + at]);
        // Where all are -inf so far, none may become NaN.
        float base = most == -INFINITY ? 0.0f : most;
        for (uint at = own; at < COLUMNS; at += LANES) {
            float p = exp_(area[row * P_PITCH + at] - base);
            area[row * P_PITCH + at] = p;
            sum = sum + p;
        }
        barrier();
        part[lane] = sum;
        barrier();
        if (own == 0) {
            float factor = exp_(old - base), all = row_sum[row] * factor;
            for (uint at = 0; at < LANES; at++) all = all + part[row * LANES + at];
            row_sum[row] = all;
            row_most[row] = most;
            row_factor[row] = factor;
        }
        barrier();
        [[unroll]] for (uint i = 0; i < LINES; i++)
            [[unroll]] for (uint j = 0; j < EACH; j++) sums[i * EACH + j] = sums[i * EACH + j] * row_factor[y * LINES + i];
        ADD_PRODUCTS(sums, value, start)
    }
    barrier();
    if (own == 0) {
        float sum = row_sum[row], inverse = sum != 0.0f ? 1.0f / sum : push.columns == 0 ? 0.0f : NAN;
        row_factor[row] = inverse;
        uint at = (batch * push.heads + head) * push.rows + first + row;
        if (column == 0 && first + row < push.rows) {
            F32(push.statistics).v[at] = row_most[row];
            F32(push.statistics).v[push.batches * push.heads * push.rows + at] = inverse;
        }
    }
    barrier();
    STORE(sums, result, row_factor[y * LINES + i])
}

float statistic(uint which, uint batch, uint head, uint row) {
    return F32(push.statistics).v[((which * push.batches + batch) * push.heads + head) * push.rows + row];
}

void query_gradient(uint batch, uint head, uint first, uint column) {
    uint lane = gl_LocalInvocationID.x, y = lane / 16, x = lane % 16, row = lane / LANES, own = lane % LANES;
    Lines query = lines(push.query, batch, head, push.rows, push.depth), key = lines(push.key, batch, head, push.columns, push.depth);
    Lines value = lines(push.value, batch, head, push.columns, push.width), dout = lines(push.dout, batch, head, push.rows, push.width);
    Lines result = lines(push.out_, batch, head, push.rows, push.width), dquery = lines(push.first, batch, head, push.rows, push.depth);
    float sums[LINES * EACH], scores[LINES * 2], slopes[LINES * 2], left[LINES];
    [[unroll]] for (uint at = 0; at < LINES * EACH; at++) sums[at] = 0.0f;
    // Of the tile before.
    barrier();
    // Rows behind the last one have its numbers.
    uint one = min(first + row, push.rows - 1);
    float slope = 0.0f;
    for (uint at = own; at < push.width; at += LANES)
        slope = slope + load(result.tensor, result.start + one * result.step + at, TYPE) * load(dout.tensor, dout.start + one * dout.step + at, TYPE);
    part[lane] = slope;
    barrier();
    if (own == 0) {
        float all = 0.0f;
        for (uint at = 0; at < LANES; at++) all = all + part[lane + at];
        row_sum[row] = all;
        row_most[row] = statistic(0, batch, head, one);
        row_factor[row] = statistic(1, batch, head, one);
        if (column == 0 && first + row < push.rows) F32(push.slopes).v[(batch * push.heads + head) * push.rows + one] = all;
    }
    for (uint start = 0; start < push.columns; start += COLUMNS) {
        PRODUCTS(scores, query, first, key, start)
        PRODUCTS(slopes, dout, first, value, start)
        [[unroll]] for (uint i = 0; i < LINES; i++)
            [[unroll]] for (uint j = 0; j < 2; j++) {
                uint line = y * LINES + i, to = x + 16 * j, this_row = min(first + line, push.rows - 1), this_column = min(start + to, push.columns - 1);
                float p = exp_(score(scores[i * 2 + j], batch, head, this_row, this_column) - row_most[line]) * row_factor[line];
                float of = p * (slopes[i * 2 + j] - row_sum[line]);
                area[line * P_PITCH + to] = start + to < push.columns && !is_masked(batch, head, this_row, this_column) ? of : 0.0f;
            }
        barrier();
        ADD_PRODUCTS(sums, key, start)
    }
    STORE(sums, dquery, push.scale)
}

void key_gradient(uint batch, uint head, uint first, uint column) {
    uint lane = gl_LocalInvocationID.x, y = lane / 16, x = lane % 16;
    Lines query = lines(push.query, batch, head, push.rows, push.depth), key = lines(push.key, batch, head, push.columns, push.depth);
    Lines value = lines(push.value, batch, head, push.columns, push.width), dout = lines(push.dout, batch, head, push.rows, push.width);
    Lines dkey = lines(push.first, batch, head, push.columns, push.depth), dvalue = lines(push.second, batch, head, push.columns, push.width);
    float of_key[LINES * EACH], of_value[LINES * EACH], scores[LINES * 2], slopes[LINES * 2], left[LINES];
    [[unroll]] for (uint at = 0; at < LINES * EACH; at++) {
        of_key[at] = 0.0f;
        of_value[at] = 0.0f;
    }
    for (uint start = 0; start < push.rows; start += COLUMNS) {
        PRODUCTS(scores, key, first, query, start)
        PRODUCTS(slopes, value, first, dout, start)
        [[unroll]] for (uint j = 0; j < 2; j++) {
            uint to = start + x + 16 * j, one = min(to, push.rows - 1);
            float most = statistic(0, batch, head, one), inverse = statistic(1, batch, head, one);
            float sum = F32(push.slopes).v[(batch * push.heads + head) * push.rows + one];
            [[unroll]] for (uint i = 0; i < LINES; i++) {
                uint line = y * LINES + i, this_column = min(first + line, push.columns - 1);
                float p = exp_(score(scores[i * 2 + j], batch, head, one, this_column) - most) * inverse;
                float of = p * (slopes[i * 2 + j] - sum);
                area[line * P_PITCH + x + 16 * j] = to < push.rows ? p : 0.0f;
                slopes[i * 2 + j] = to < push.rows && !is_masked(batch, head, one, this_column) ? of : 0.0f;
            }
        }
        barrier();
        ADD_PRODUCTS(of_value, dout, start)
        barrier();
        [[unroll]] for (uint i = 0; i < LINES; i++)
            [[unroll]] for (uint j = 0; j < 2; j++) area[(y * LINES + i) * P_PITCH + x + 16 * j] = slopes[i * 2 + j];
        barrier();
        ADD_PRODUCTS(of_key, query, start)
    }
    STORE(of_key, dkey, push.scale)
    STORE(of_value, dvalue, 1.0f)
}

void main() {
    uint rows = OP == ATTENTION || OP == OF_QUERY ? push.rows : push.columns;
    uint depth = OP == ATTENTION ? push.width : OP == OF_QUERY ? push.depth : max(push.depth, push.width);
    uint tiles = (rows + ROWS - 1) / ROWS, parts = (depth + 16 * EACH - 1) / (16 * EACH);
    uint items = push.batches * push.heads * tiles * parts;
    for (uint item = gl_WorkGroupID.x; item < items; item += gl_NumWorkGroups.x) {
        uint column = item % parts * (16 * EACH), first = item / parts % tiles * ROWS, line = item / parts / tiles;
        uint batch = line / push.heads, head = line % push.heads;
        if (OP == ATTENTION) attention(batch, head, first, column);
        else if (OP == OF_QUERY) query_gradient(batch, head, first, column);
        else key_gradient(batch, head, first, column);
    }
}
