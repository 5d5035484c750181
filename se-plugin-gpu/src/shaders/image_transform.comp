#version 460
// Images that are turned, moved or seen from elsewhere: each element of the result is found in the images by a projection.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
// What is beyond the images.
const uint REFLECT = 0, WRAP = 1, CONSTANT = 2, NEAREST = 3;
layout(constant_id = 0) const uint FILL = 2;
layout(constant_id = 1) const bool IS_BILINEAR = false;
layout(constant_id = 2) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t images, transforms, out_;
    uint n, channels;
    // Down and right, of the images and of the result.
    uvec2 size, resized;
    // From the transform of an image to the next: 8, or 0 for one of all images.
    uint each;
    float fill;
} push;

// A place along an axis, within the images. All is as the CPU computes it: it decides which elements are taken.
float within(float place, uint size) {
    float last = float(size - 1), whole = float(size), twice = 2.0f * whole;
    precise float at = place;
    // Which is outside.
    if (isnan(place)) return place;
    if (FILL == CONSTANT) return at;
    if (FILL == REFLECT && size > 1) {
        if (at < 0.0f) {
            at = twice * trunc(-at / twice) + at;
            at = at < -whole ? at + twice : -at - 1.0f;
        } else if (at > last) {
            at = at - twice * trunc(at / twice);
            if (at >= whole) at = twice - at - 1.0f;
        }
    }
    if (FILL == WRAP && size > 1) {
        if (at < 0.0f) at = at + whole * (trunc(-at / last) + 1.0f);
        else if (at > last) at = at - whole * trunc(at / last);
    }
    return min(max(at, 0.0f), last);
}

float transform(uint image, uint i) { return F32(push.transforms).v[image * push.each + i]; }

float fill() { return TYPE == T_U8 ? float(uint(int(push.fill)) & 255u) : rounded(push.fill, TYPE); }

float element(uint image, float row, float column, uint channel) {
    // Not a number is outside too.
    bool is_inside = row >= 0.0f && row < float(push.size.x) && column >= 0.0f && column < float(push.size.y);
    if (!is_inside) return fill();
    return load(push.images, ((image * push.size.x + uint(row)) * push.size.y + uint(column)) * push.channels + channel, TYPE);
}

// Halves are rounded away from 0.
float nearest(float x) {
    float size = abs(x), low = floor(size), whole = size - low >= 0.5f ? low + 1.0f : low;
    return x < 0.0f ? -whole : whole;
}

float result(uint image, float row, float column, uint channel) {
    precise float projection = transform(image, 6) * column + transform(image, 7) * row + 1.0f;
    if (projection == 0.0f) return fill();
    precise float x = (transform(image, 0) * column + transform(image, 1) * row + transform(image, 2)) / projection;
    precise float y = (transform(image, 3) * column + transform(image, 4) * row + transform(image, 5)) / projection;
    x = within(x, push.size.y);
    y = within(y, push.size.x);
    if (!IS_BILINEAR) return element(image, nearest(y), nearest(x), channel);
    float top = floor(y), left = floor(x), bottom = top + 1.0f, right = left + 1.0f;
    precise float above = (right - x) * element(image, top, left, channel) + (x - left) * element(image, top, right, channel);
    precise float below = (right - x) * element(image, bottom, left, channel) + (x - left) * element(image, bottom, right, channel);
    precise float value = (bottom - y) * above + (y - top) * below;
    return value;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint q = i / push.channels, image = q / push.resized.y / push.resized.x;
        float row = float(q / push.resized.y % push.resized.x), column = float(q % push.resized.y);
        store(push.out_, i, TYPE, result(image, row, column, i % push.channels));
    }
}
