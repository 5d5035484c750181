#version 460
// Images of another size, by the nearest element or between four, and the gradients.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
const uint NEAREST = 0, BILINEAR = 1, NEAREST_GRADIENT = 2, BILINEAR_GRADIENT = 3;
layout(constant_id = 0) const uint OP = 0;
// Of the tensor that is read, and the type of the result.
layout(constant_id = 1) const uint SIZE = 4;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const uint OUT = 0;
layout(constant_id = 4) const bool ALIGN_CORNERS = false;
layout(constant_id = 5) const bool HALF_PIXEL_CENTERS = false;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    uint n, channels;
    // Down and right: of the images, and of their other size.
    uvec2 size, resized;
    vec2 scale;
} push;

bool is_nearest() { return OP == NEAREST || OP == NEAREST_GRADIENT; }

// Where a resized element is in the image. All is as the CPU computes it, to the bit: it decides which elements are taken.
float place(uint resized, float scale) {
    precise float middle = float(resized) + (HALF_PIXEL_CENTERS ? 0.5f : 0.0f);
    precise float at = middle * scale;
    precise float moved = at - (HALF_PIXEL_CENTERS && !is_nearest() ? 0.5f : 0.0f);
    return moved;
}

// The first of the two elements that are next to it, or the nearest.
uint lower(uint resized, float scale, uint size) {
    float at = place(resized, scale), low = floor(at);
    // Halves are rounded up.
    if (is_nearest() && ALIGN_CORNERS && at - low >= 0.5f) low += 1.0f;
    return min(uint(max(low, 0.0f)), size - 1);
}
uint upper(uint resized, float scale, uint size) {
    return is_nearest() ? lower(resized, scale, size) : min(uint(max(ceil(place(resized, scale)), 0.0f)), size - 1);
}
// How far from the first to the second.
float part(uint resized, float scale) {
    precise float at = place(resized, scale), beyond = at - floor(at);
    return beyond;
}

uint image_at(uint image, uint row, uint column, uint channel) {
    return ((image * push.size.x + row) * push.size.y + column) * push.channels + channel;
}

float bilinear(uint image, uint y, uint x, uint channel) {
    uint top = lower(y, push.scale.x, push.size.x), bottom = upper(y, push.scale.x, push.size.x);
    uint left = lower(x, push.scale.y, push.size.y), right = upper(x, push.scale.y, push.size.y);
    float a = load(push.in_, image_at(image, top, left, channel), TYPE), b = load(push.in_, image_at(image, top, right, channel), TYPE);
    float c = load(push.in_, image_at(image, bottom, left, channel), TYPE), d = load(push.in_, image_at(image, bottom, right, channel), TYPE);
    float along_x = part(x, push.scale.y);
    precise float above = a + (b - a) * along_x, below = c + (d - c) * along_x;
    precise float value = above + (below - above) * part(y, push.scale.x);
    return value;
}

// The first resized element whose second element, or else whose first, is not before this one. They never go back.
uint first(uint element, uint resized, float scale, uint size, bool by_upper) {
    uint low = 0, high = resized;
    while (low < high) {
        uint middle = (low + high) / 2;
        if ((by_upper ? upper(middle, scale, size) : lower(middle, scale, size)) < element) low = middle + 1;
        else high = middle;
    }
    return low;
}

// How much of a resized element is this one.
float share(uint resized, uint element, float scale, uint size) {
    if (is_nearest()) return 1.0f;
    float beyond = part(resized, scale), value = 0.0f;
    if (lower(resized, scale, size) == element) value += 1.0f - beyond;
    if (upper(resized, scale, size) == element) value += beyond;
    return value;
}

float gradient(uint image, uint row, uint column, uint channel) {
    float value = 0.0f;
    uint bottom = first(row + 1, push.resized.x, push.scale.x, push.size.x, false);
    uint left = first(column, push.resized.y, push.scale.y, push.size.y, true);
    uint right = first(column + 1, push.resized.y, push.scale.y, push.size.y, false);
    for (uint y = first(row, push.resized.x, push.scale.x, push.size.x, true); y < bottom; y++) {
        float down = share(y, row, push.scale.x, push.size.x);
        for (uint x = left; x < right; x++)
            value += load(push.in_, ((image * push.resized.x + y) * push.resized.y + x) * push.channels + channel, TYPE)
                * down * share(x, column, push.scale.y, push.size.y);
    }
    return value;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    bool is_gradient = OP == NEAREST_GRADIENT || OP == BILINEAR_GRADIENT;
    uvec2 sizes = is_gradient ? push.size : push.resized;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint channel = i % push.channels, q = i / push.channels;
        uint x = q % sizes.y, y = q / sizes.y % sizes.x, image = q / sizes.y / sizes.x;
        if (is_gradient) {
            store(push.out_, i, OUT, gradient(image, y, x, channel));
        } else if (OP == NEAREST) {
            uint row = lower(y, push.scale.x, push.size.x), column = lower(x, push.scale.y, push.size.y);
            store_bits(push.out_, i, SIZE, load_bits(push.in_, image_at(image, row, column, channel), SIZE));
        } else {
            // An infinity minus itself is not a number.
            bool is_same = all(equal(push.size, push.resized));
            store(push.out_, i, OUT, is_same ? load(push.in_, i, TYPE) : bilinear(image, y, x, channel));
        }
    }
}
