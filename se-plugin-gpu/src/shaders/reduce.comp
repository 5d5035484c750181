#version 460
// Sums, extremes and their positions along some axes of a tensor. The innermost axis may be one of them (IS_ROW), or its V neighbours
// are of as many results. `across` neighbouring threads read along it, and `down` rows of them along another axis: together they
// compute a result, or those of V neighbours each. A workgroup computes a part of several. `src/kernels/reduce.rs` has the
// ops and divides the work.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint IN = 0;
layout(constant_id = 2) const uint OUT = 0;
layout(constant_id = 3) const bool IS_ROW = false;
// Whether four neighbours are read at once: the innermost axis has a multiple of four, which are aligned. Only floats are.
layout(constant_id = 4) const bool IS_WIDE = false;

const uint SUM = 0, MEAN = 1, PROD = 2, MAX = 3, MIN = 4, ALL = 5, ANY = 6, ARGMAX = 7, ARGMIN = 8, L2 = 9;

struct Axis { uint len, stride; };
layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Indices along the kept axes below, and elements of a result.
    uint n, count;
    // The length of the innermost axis. The elements of a result are along a line, which is that axis or another, `gone` times.
    uint inner, line, stride, gone;
    // Of a part of the elements; each is computed by itself.
    uint line_part, line_parts, gone_part;
    // The axes that stay, in the lower 16 bits, and those behind them, without the innermost and the line.
    uint ranks;
    uint across, down;
    Axis axes[8];
} push;

const uint V = IS_WIDE ? 4 : 1;
// The results whose neighbours a thread reads.
const uint OWN = IS_ROW ? 1 : V;
// How often a thread reads in a turn of a loop, before it uses what it has read: `EACH` in `src/kernels/reduce.rs`.
const uint EACH = 4;

shared COMPUTE partial[256 * OWN];
shared uint places[256 * OWN];

// What has been read, so far, for each of V neighbours: a sum with what rounding took from it, or the best element and where it was.
struct State { COMPUTE value[4], lost[4]; uint at[4]; };
// V neighbours.
struct Four { COMPUTE v[4]; };

bool is_nan(COMPUTE x) { return x != x; }

State start() {
#ifdef DOUBLE
    const COMPUTE high = uint64BitsToDouble(0x7ff0000000000000ul), most = uint64BitsToDouble(0x7feffffffffffffful), low = -high, least = -most;
#else
#ifdef IS_FLOAT
    const COMPUTE low = uintBitsToFloat(0xff800000u), high = uintBitsToFloat(0x7f800000u);
    const COMPUTE most = uintBitsToFloat(IN == T_F16 ? 0x477fe000u : IN == T_BF16 ? 0x7f7f0000u : 0x7f7fffffu), least = -most;
#else
    const COMPUTE low = int64_t(1) << 63, high = ~low, least = low, most = high;
#endif
#endif
    COMPUTE value = COMPUTE(0);
    switch (OP) {
        case PROD: case ALL: value = COMPUTE(1); break;
        case MAX: value = low; break;
        case MIN: value = high; break;
        // As in Eigen: the position is 0 if nothing is better.
        case ARGMAX: value = least; break;
        case ARGMIN: value = most; break;
    }
    State s;
    for (uint j = 0; j < 4; j++) {
        s.value[j] = value;
        s.lost[j] = COMPUTE(0);
        s.at[j] = 0;
    }
    return s;
}

State add(State s, uint j, COMPUTE x) {
#ifdef IS_FLOATING
    // Kahan's sum, unless it is infinite.
    precise COMPUTE y = x - s.lost[j];
    precise COMPUTE sum = s.value[j] + y;
    precise COMPUTE lost = (sum - s.value[j]) - y;
    s.value[j] = sum;
    s.lost[j] = isinf(sum) || isnan(sum) ? 0.0f : lost;
#else
    s.value[j] = PLUS(s.value[j], x);
#endif
    return s;
}

State take(State s, uint j, COMPUTE x, uint at) {
    switch (OP) {
        case SUM: case MEAN: return add(s, j, x);
        case L2: return add(s, j, TIMES(x, x));
        case PROD: s.value[j] = TIMES(s.value[j], x); break;
        case MAX: if (x > s.value[j] || is_nan(x)) s.value[j] = x; break;
        case MIN: if (x < s.value[j] || is_nan(x)) s.value[j] = x; break;
        case ALL: if (x == COMPUTE(0)) s.value[j] = COMPUTE(0); break;
        case ANY: if (x != COMPUTE(0)) s.value[j] = COMPUTE(1); break;
        case ARGMAX: if (x > s.value[j] || (x == s.value[j] && at < s.at[j])) { s.value[j] = x; s.at[j] = at; } break;
        case ARGMIN: if (x < s.value[j] || (x == s.value[j] && at < s.at[j])) { s.value[j] = x; s.at[j] = at; } break;
    }
    return s;
}

uint place(uint i, uint first, uint end) {
    uint at = 0;
    for (int axis = int(end) - 1; axis >= int(first); axis--) {
        at += i % push.axes[axis].len * push.axes[axis].stride;
        i /= push.axes[axis].len;
    }
    return at;
}

Four fetch(uint i) {
    Four four;
#ifdef IS_FLOAT
    if (IS_WIDE) {
        vec4 all = load_four(push.in_, i / 4, IN);
        [[unroll]] for (uint j = 0; j < 4; j++) four.v[j] = all[j];
        return four;
    }
#endif
    four.v[0] = load(push.in_, i, IN);
    return four;
}

// What a thread reads, from a place and an element of each line on.
State read_from(uint from, uint first_gone, uint first) {
    uint gone_end = min((gl_WorkGroupID.y / push.line_parts + 1) * push.gone_part, push.gone);
    uint end = min((gl_WorkGroupID.y % push.line_parts + 1) * push.line_part, push.line);
    uint gone_step = IS_ROW ? push.down : 1, step = IS_ROW ? push.across * V : push.down, stride = IS_ROW ? 1 : push.stride;
    uint last = end - (IS_ROW ? V : 1), kept = push.ranks & 0xffffu, rank = push.ranks >> 16;
    State s = start();
    for (uint gone = first_gone; gone < gone_end; gone += gone_step) {
        uint base = from + place(gone, kept, rank);
        for (uint k = first; k < end; k += EACH * step) {
            Four fours[EACH];
            [[unroll]] for (uint i = 0; i < EACH; i++) fours[i] = fetch(base + min(k + i * step, last) * stride);
            [[unroll]] for (uint i = 0; i < EACH; i++)
                if (k + i * step < end)
                    [[unroll]] for (uint j = 0; j < V; j++) s = take(s, j, fours[i].v[j], k + i * step + (IS_ROW ? j : 0));
        }
    }
    return s;
}

// Adds what other neighbours or threads have read.
State merge(State s, uint j, COMPUTE x, uint at) {
    s.lost[j] = COMPUTE(0);
    if (OP != L2) return take(s, j, x, at);
    s.value[j] = PLUS(s.value[j], x);
    return s;
}

void finish(uint i, COMPUTE value, uint at) {
    switch (OP) {
        case MEAN: value /= COMPUTE(push.count); break;
        case L2: value /= COMPUTE(2); break;
        case ARGMAX: case ARGMIN:
            if (OUT == T_I32) U32(push.out_).v[i] = at;
            else U64(push.out_).v[i] = int64_t(at);
            return;
    }
    store(push.out_, i, OUT, value);
}

void main() {
    uint lane = gl_LocalInvocationID.x, across = push.across, threads = across * push.down;
    uint column = lane % across, row = lane % threads / across, own = 256 / threads;
    uint tiles = IS_ROW ? 1 : (push.inner - 1) / (across * V) + 1, units = ((push.n - 1) / own + 1) * tiles;
    uint first_gone = gl_WorkGroupID.y / push.line_parts * push.gone_part + (IS_ROW ? row : 0);
    uint first = gl_WorkGroupID.y % push.line_parts * push.line_part + (IS_ROW ? column * V : row);
    uint results = IS_ROW ? 1 : push.inner, of_part = gl_WorkGroupID.y * push.n * results;
    for (uint unit = gl_WorkGroupID.x; unit < units; unit += gl_NumWorkGroups.x) {
        uint i = unit / tiles * own + lane / threads, at = IS_ROW ? 0 : (unit % tiles * across + column) * V;
        bool is_one = i < push.n && at < results;
        State s = start();
        if (is_one) s = read_from(place(i, 0, push.ranks & 0xffffu) + at, first_gone, first);
        if (IS_ROW) [[unroll]] for (uint j = 1; j < V; j++) s = merge(s, 0, s.value[j], s.at[j]);
        [[unroll]] for (uint j = 0; j < OWN; j++) {
            partial[j * 256 + lane] = s.value[j];
            places[j * 256 + lane] = s.at[j];
        }
        barrier();
        uint least = IS_ROW ? 1 : across;
        for (uint other = threads / 2; other >= least; other /= 2) {
            if (lane % threads < other)
                [[unroll]] for (uint j = 0; j < OWN; j++) {
                    s = merge(s, j, partial[j * 256 + lane + other], places[j * 256 + lane + other]);
                    partial[j * 256 + lane] = s.value[j];
                    places[j * 256 + lane] = s.at[j];
                }
            barrier();
        }
        if (is_one && lane % threads < least)
            [[unroll]] for (uint j = 0; j < OWN; j++) finish(of_part + i * results + at + j, s.value[j], s.at[j]);
        barrier();
    }
}
