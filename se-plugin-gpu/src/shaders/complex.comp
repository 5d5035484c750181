#version 460
// One result for each complex element of up to two inputs, which are broadcast.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "complex.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
// The type of real inputs.
layout(constant_id = 1) const uint IN = 0;
// The type of a real result.
layout(constant_id = 2) const uint OUT = 0;
layout(constant_id = 3) const uint RANK = 1;
#include "broadcast.glsl"

// `src/kernels/complex.rs` has the ops. Those from FIRST_REAL on are of real inputs, and those from FIRST_PART on have a real result.
const uint FIRST_REAL = 20, FIRST_PART = 30;

// The square root of the sum of both squares, which may be too large or too small for a float.
float size(vec2 x) {
    float a = abs(x.x), b = abs(x.y), most = max(a, b), least_ = min(a, b);
    if (isinf(a) || isinf(b)) return INFINITY;
    if (most == 0.0f || isnan(a) || isnan(b)) return a + b;
    float ratio = least_ / most;
    return most * sqrt(1.0f + ratio * ratio);
}

// By the larger part of the divisor, whose square may be too large for a float: R. Smith, "Complex division" (1962).
vec2 quotient(vec2 a, vec2 b) {
    if (abs(b.x) >= abs(b.y)) {
        float ratio = b.x == 0.0f ? 0.0f : b.y / b.x, all = b.x + b.y * ratio;
        return vec2((a.x + a.y * ratio) / all, (a.y - a.x * ratio) / all);
    }
    float ratio = b.x / b.y, all = b.x * ratio + b.y;
    return vec2((a.x * ratio + a.y) / all, (a.y * ratio - a.x) / all);
}

vec2 result(vec2 x, vec2 y) {
    switch (OP) {
        case 0: return vec2(x.x + y.x, x.y + y.y);
        case 1: return vec2(x.x - y.x, x.y - y.y);
        case 2: return product(x, y);
        case 3: return quotient(x, y);
        case 4: return y.x == 0.0f && y.y == 0.0f ? vec2(0.0f, 0.0f) : quotient(x, y);
        case 10: return vec2(-x.x, -x.y);
        case 11: return vec2(x.x, -x.y);
        case 12: return product(x, x);
        case 13: return quotient(vec2(1.0f, 0.0f), x);
        case 14: {
            float all = size(x);
            return all == 0.0f ? vec2(0.0f, 0.0f) : vec2(x.x / all, x.y / all);
        }
        case 15: {
            float all = exp_(x.x);
            return vec2(all * sine(x.y, 1), all * sine(x.y, 0));
        }
        default: return vec2(x.x, y.x);
    }
}

float part(vec2 x) {
    switch (OP) {
        case 30: return x.x;
        case 31: return x.y;
        case 32: return size(x);
        default: return atan2_(x.y, x.x);
    }
}

vec2 element(uint64_t at, uint i) { return OP >= FIRST_REAL && OP < FIRST_PART ? vec2(load(at, i, IN), 0.0f) : load_complex(at, i); }

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uvec2 at = places(i);
        vec2 x = element(push.a, at.x);
        if (OP >= FIRST_PART) store(push.out_, i, OUT, part(x));
        // A conversion has no second input: its imaginary part is 0.
        else store_complex(push.out_, i, result(x, OP == FIRST_REAL ? vec2(0.0f, 0.0f) : element(push.b, at.y)));
    }
}
