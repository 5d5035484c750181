#version 460
// A step of a Fourier transform along an axis: sums of RADIX elements each, of which the sums of the steps before are the elements.
// A tensor is [rows, length, inner].
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "complex.glsl"

layout(local_size_x = 256) in;
// What is read: complex numbers, real ones, or the first half of a spectrum, whose other half is its mirror image.
layout(constant_id = 0) const uint IN = 0;
// Whether only the real part is stored.
layout(constant_id = 1) const bool IS_REAL = false;
layout(constant_id = 2) const bool IS_INVERSE = false;

const uint COMPLEX = 0, REAL = 1, HALF = 2;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Results, the length of the transform, those of a row of the input and of the result, and the elements behind each.
    uint n, len, in_len, out_len, inner;
    // How many elements a sum has before, and how many such sums are added.
    uint before, radix;
    float scale;
} push;

vec2 fetch(uint row, uint at, uint i) {
    bool is_mirrored = IN == HALF && at > push.len / 2;
    uint place = (row * push.in_len + (is_mirrored ? push.len - at : at)) * push.inner + i;
    if (IN == REAL) return vec2(F32(push.in_).v[place], 0.0f);
    vec2 x = load_complex(push.in_, place);
    return is_mirrored ? vec2(x.x, -x.y) : x;
}

// The point at so many of `all` parts of a turn, from the nearest quarter: an angle of a whole turn would have fewer digits.
vec2 turned(uint part, uint all) {
    uint quarter = (8 * part + all) / (2 * all);
    float angle = float(int(4 * part) - int(quarter * all)) * 1.57079632679f / float(all);
    float across = sine(angle, int(quarter) + 1), up = sine(angle, int(quarter));
    return vec2(across, IS_INVERSE ? up : -up);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, all = push.before * push.radix, rest = push.len / all;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint column = i % push.inner, at = i / push.inner % push.out_len, row = i / push.inner / push.out_len;
        uint wave = at / rest, from = wave % push.before * push.radix * rest + at % rest, part = 0;
        vec2 sum = vec2(0.0f, 0.0f);
        for (uint k = 0; k < push.radix; k++) {
            vec2 x = product(fetch(row, from + k * rest, column), turned(part, all));
            sum = vec2(sum.x + x.x, sum.y + x.y);
            part += wave;
            if (part >= all) part -= all;
        }
        if (IS_REAL) F32(push.out_).v[i] = sum.x * push.scale;
        else store_complex(push.out_, i, vec2(sum.x * push.scale, sum.y * push.scale));
    }
}
