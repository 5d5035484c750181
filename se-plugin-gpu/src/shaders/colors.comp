#version 460
// Colors of red, green and blue, as hue, saturation and value, and back.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool TO_RGB = false;
layout(constant_id = 1) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    uint n;
} push;

void set(uint i, float a, float b, float c) {
    store(push.out_, 3 * i, TYPE, a);
    store(push.out_, 3 * i + 1, TYPE, b);
    store(push.out_, 3 * i + 2, TYPE, c);
}

float bounded(float x) { return isnan(x) ? x : min(max(x, 0.0f), 1.0f); }

void to_rgb(uint i, float hue, float saturation, float value) {
    float sixth = hue * 6.0f, white = 1.0f - saturation;
    float r = bounded(abs(sixth - 3.0f) - 1.0f), g = bounded(2.0f - abs(sixth - 2.0f)), b = bounded(2.0f - abs(sixth - 4.0f));
    set(i, (white + saturation * r) * value, (white + saturation * g) * value, (white + saturation * b) * value);
}

void to_hsv(uint i, float r, float g, float b) {
    float value = max(max(r, g), b), range = value - min(min(r, g), b), hue = 0.0f;
    if (range > 0.0f) {
        float unit = 1.0f / range * (1.0f / 6.0f);
        hue = r == value ? unit * (g - b) : g == value ? unit * (b - r) + 2.0f / 6.0f : unit * (r - g) + 4.0f / 6.0f;
    }
    set(i, hue < 0.0f ? hue + 1.0f : hue, value > 0.0f ? range / value : 0.0f, value);
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        float a = load(push.in_, 3 * i, TYPE), b = load(push.in_, 3 * i + 1, TYPE), c = load(push.in_, 3 * i + 2, TYPE);
        if (TO_RGB) to_rgb(i, a, b, c);
        else to_hsv(i, a, b, c);
    }
}
