// Several ops of `elementwise.glsl`, one after the other, on elements of up to six inputs. What an op gives is rounded to the type of
// its step, as if it were stored and loaded.
#include "elementwise.glsl"

// Four bits each, from the lowest: the types of the inputs, then, from bit 24, that of the output.
layout(constant_id = 0) const uint TYPES = 0;
layout(constant_id = 1) const uint INPUTS = 1;
layout(constant_id = 3) const uint STEPS = 1;
// Of each step: in 8 bits its op, in 4 its type, and in 4 each the places of its operands: from 0 the inputs, from 6 the steps
// before it.
layout(constant_id = 4) const uint STEP_0 = 0;
layout(constant_id = 5) const uint STEP_1 = 0;
layout(constant_id = 6) const uint STEP_2 = 0;
layout(constant_id = 7) const uint STEP_3 = 0;
layout(constant_id = 8) const uint STEP_4 = 0;
layout(constant_id = 9) const uint STEP_5 = 0;
layout(constant_id = 10) const uint STEP_6 = 0;
layout(constant_id = 11) const uint STEP_7 = 0;
// The `alpha` of each step, as bits.
layout(constant_id = 12) const uint ALPHA_0 = 0;
layout(constant_id = 13) const uint ALPHA_1 = 0;
layout(constant_id = 14) const uint ALPHA_2 = 0;
layout(constant_id = 15) const uint ALPHA_3 = 0;
layout(constant_id = 16) const uint ALPHA_4 = 0;
layout(constant_id = 17) const uint ALPHA_5 = 0;
layout(constant_id = 18) const uint ALPHA_6 = 0;
layout(constant_id = 19) const uint ALPHA_7 = 0;
// Whether four results are computed at once, of floats and bools only: along the last axis each input has neighbours that are
// aligned, or one element for all.
layout(constant_id = 20) const bool IS_WIDE = false;

// The number of the op with three operands.
const uint SELECT = 91;

float rounded_to(float x, uint type) { return type == T_BOOL ? flag(x != 0.0f) : rounded(x, type); }

// An element of an input, or four neighbours of which the first is at a multiple of four.
vec4 elements(uint64_t at, uint i, uint stride, uint type) {
    if (!IS_WIDE || stride == 0u) return vec4(load(at, i, type));
    if (type == T_BOOL) {
        uint bits = U32(at).v[i / 4];
        return vec4(flag((bits & 0xffu) != 0u), flag((bits & 0xff00u) != 0u), flag((bits & 0xff0000u) != 0u), flag(bits >> 24 != 0u));
    }
    return load_four(at, i / 4, type);
}

void store_elements(uint64_t at, uint i, uint type, vec4 x) {
    if (!IS_WIDE) store(at, i, type, x[3]);
    else if (type == T_BOOL) U32(at).v[i] = uint(x[0]) | uint(x[1]) << 8 | uint(x[2]) << 16 | uint(x[3]) << 24;
    else store_four(at, i, type, x);
}

// Drops the first of four numbers and appends one. Indices that a loop counts would put them in memory, unless a driver unrolls it.
vec4 next(vec4 x, float last) { return vec4(x[1], x[2], x[3], last); }

// Not loops: a driver that does not unroll them would put the arrays in memory.
#define FOR_EACH_INPUT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
// Each step is all ops until a driver knows the constants: what has fewer steps compiles in less time.
#if MOST_STEPS == 2
#define FOR_EACH_STEP(DO) DO(0) DO(1)
#elif MOST_STEPS == 4
#define FOR_EACH_STEP(DO) DO(0) DO(1) DO(2) DO(3)
#else
#define FOR_EACH_STEP(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#endif

#define TAKE(j) if (j < INPUTS) { values[j] = inputs[j][0]; inputs[j] = next(inputs[j], 0.0f); }
#define RUN_STEP(k) \
    if (k < STEPS) { \
        const uint type = STEP_##k >> 8 & 0xfu; \
        float a = values[STEP_##k >> 12 & 0xfu], b = values[STEP_##k >> 16 & 0xfu]; \
        if ((STEP_##k & 0xffu) == SELECT) values[6 + k] = a != 0.0f ? b : values[STEP_##k >> 20]; \
        else values[6 + k] = rounded_to(result(STEP_##k & 0xffu, a, b, uintBitsToFloat(ALPHA_##k), type), type); \
    }

// Declares the results of all steps for `vec4 inputs[6]`, which have four elements, or one of which all four are copies: then only the
// last result counts. The driver decides whether to unroll the loop: steps may be long.
#define RUN_STEPS(results) \
    vec4 results = vec4(0.0f); \
    for (uint element = 0; element < (IS_WIDE ? 4 : 1); element++) { \
        float values[14]; \
        FOR_EACH_INPUT(TAKE) \
        FOR_EACH_STEP(RUN_STEP) \
        results = next(results, values[5 + STEPS]); \
    }
