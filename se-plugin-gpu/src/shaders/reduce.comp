#version 460
// Sums, extremes and their positions along some axes of a tensor. The ops are in `src/kernels/reduce.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint IN = 0;
layout(constant_id = 2) const uint OUT = 0;
// Whether a workgroup computes a result, or else each thread.
layout(constant_id = 3) const bool IS_WIDE = false;
// Whether the elements of a result are along one axis.
layout(constant_id = 4) const bool IS_LINE = false;

const uint SUM = 0, MEAN = 1, PROD = 2, MAX = 3, MIN = 4, ALL = 5, ANY = 6, ARGMAX = 7, ARGMIN = 8, L2 = 9;

struct Axis { uint len, stride; };
layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Results, and elements for each.
    uint n, count;
    // The first so many axes stay.
    uint kept, rank;
    Axis axes[12];
} push;

// Elements in a turn of a loop, where a workgroup computes a result: `EACH` in `src/kernels/reduce.rs`.
const uint EACH = 4;

shared COMPUTE partial[256];
shared uint places[256];

// What has been read, so far: a sum with what rounding took from it, or the best element and where it was.
struct State { COMPUTE value; COMPUTE lost; uint at; };

bool is_nan(COMPUTE x) { return x != x; }

State start() {
#ifdef IS_FLOAT
    const COMPUTE low = uintBitsToFloat(0xff800000u), high = uintBitsToFloat(0x7f800000u);
    const COMPUTE most = uintBitsToFloat(IN == T_F16 ? 0x477fe000u : IN == T_BF16 ? 0x7f7f0000u : 0x7f7fffffu), least = -most;
#else
    const COMPUTE low = int64_t(1) << 63, high = ~low, least = low, most = high;
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
    s.value = value;
    s.lost = COMPUTE(0);
    s.at = 0;
    return s;
}

State add(State s, COMPUTE x) {
#ifdef IS_FLOAT
    // Kahan's sum, unless it is infinite.
    precise float y = x - s.lost;
    precise float sum = s.value + y;
    precise float lost = (sum - s.value) - y;
    s.value = sum;
    s.lost = isinf(sum) || isnan(sum) ? 0.0f : lost;
#else
    s.value += x;
#endif
    return s;
}

State take(State s, COMPUTE x, uint at) {
    switch (OP) {
        case SUM: case MEAN: return add(s, x);
        case L2: return add(s, x * x);
        case PROD: s.value *= x; break;
        case MAX: if (x > s.value || is_nan(x)) s.value = x; break;
        case MIN: if (x < s.value || is_nan(x)) s.value = x; break;
        case ALL: if (x == COMPUTE(0)) s.value = COMPUTE(0); break;
        case ANY: if (x != COMPUTE(0)) s.value = COMPUTE(1); break;
        case ARGMAX: if (x > s.value || (x == s.value && at < s.at)) { s.value = x; s.at = at; } break;
        case ARGMIN: if (x < s.value || (x == s.value && at < s.at)) { s.value = x; s.at = at; } break;
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

// The place of an element of a result, from the first.
uint reduced(uint k) {
    return IS_LINE ? k * push.axes[push.kept].stride : place(k, push.kept, push.rank);
}

void finish(uint i, State s) {
    COMPUTE value = s.value;
    switch (OP) {
        case MEAN: value /= COMPUTE(push.count); break;
        case L2: value /= COMPUTE(2); break;
        case ARGMAX: case ARGMIN:
            if (OUT == T_I32) U32(push.out_).v[i] = s.at;
            else U64(push.out_).v[i] = int64_t(s.at);
            return;
    }
    store(push.out_, i, OUT, value);
}

void main() {
    if (!IS_WIDE) {
        uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
        for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
            uint from = place(i, 0, push.kept);
            State s = start();
            for (uint k = 0; k < push.count; k++) s = take(s, load(push.in_, from + reduced(k), IN), k);
            finish(i, s);
        }
        return;
    }
    uint lane = gl_LocalInvocationID.x;
    for (uint i = gl_WorkGroupID.x; i < push.n; i += gl_NumWorkGroups.x) {
        uint from = place(i, 0, push.kept);
        State s = start();
        for (uint first = lane; first < push.count; first += EACH * 256)
            [[unroll]] for (uint j = 0; j < EACH; j++) {
                uint k = first + j * 256;
                if (k < push.count) s = take(s, load(push.in_, from + reduced(k), IN), k);
            }
        partial[lane] = s.value;
        places[lane] = s.at;
        barrier();
        for (uint other = 128; other > 0; other /= 2) {
            if (lane < other) {
                s.value = partial[lane];
                s.lost = COMPUTE(0);
                if (OP == L2) s.value += partial[lane + other];
                else s = take(s, partial[lane + other], places[lane + other]);
                partial[lane] = s.value;
                places[lane] = s.at;
            }
            barrier();
        }
        if (lane == 0) finish(i, s);
        barrier();
    }
}
