#version 460
// Numbers rounded to whole multiples of a scale, as a range has it, and the gradient of that.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool IS_GRADIENT = false;
// Whether numbers may be outside of the range.
layout(constant_id = 1) const bool IS_GIVEN = false;
// Whether halves are rounded up, and not to even numbers.
layout(constant_id = 2) const bool ROUNDS_UP = false;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, gradients, low, high, out_;
    // There are `depth` ranges, each for `inner` neighbours.
    uint n, depth, inner;
    // The first and the last whole number.
    float least, most;
} push;

const float LARGEST = 3.402823466e+38f;

float quantized(float x, float low, float high) {
    precise float below = push.least * low > 0.0f ? push.least / low : LARGEST;
    precise float above = push.most * high > 0.0f ? push.most / high : LARGEST;
    // The side whose numbers are larger decides the scale, and the end of the other one.
    bool is_below = below < above;
    precise float scale = is_below ? below : above;
    precise float inverse = is_below ? low / push.least : high / push.most;
    if (IS_GIVEN) {
        precise float end = is_below ? push.most * inverse : push.least * inverse;
        float first = is_below ? low : end, last = is_below ? end : high;
        x = x < first ? first : x > last ? last : x;
    }
    precise float whole = x * scale;
    precise float up = whole + 0.5f;
    return (ROUNDS_UP ? floor(up) : roundEven(whole)) * inverse;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint range = i / push.inner % push.depth;
        float x = F32(push.in_).v[i], low = F32(push.low).v[range], high = F32(push.high).v[range];
        if (IS_GRADIENT) {
            F32(push.out_).v[i] = x >= low && x <= high ? F32(push.gradients).v[i] : 0.0f;
        } else {
            // There may be no number between them.
            bool is_range = !IS_GIVEN || low <= high;
            F32(push.out_).v[i] = is_range ? quantized(x, low, high) : uintBitsToFloat(0x7FC00000);
        }
    }
}
