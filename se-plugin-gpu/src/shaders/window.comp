#version 460
// Pooling, and convolutions of each channel by itself, with their gradients: a thread computes a result, or, of the gradient
// of a filter, 16 do. The ops are in `src/kernels/window.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool IS_DEEP = false;

#define TENSORS a, b, c, out_
#include "window.glsl"

// The gradient of the greatest goes to the first of them, or to each.
const uint GREATEST = 0, MEAN = 1, FIRST_GRADIENT = 2, MEAN_GRADIENT = 3, CONVOLVE = 4, IMAGE_GRADIENT = 5,
           FILTER_GRADIENT = 6, EACH_GRADIENT = 7;

// Results of a channel.
uint each() { return push.results / push.channels; }

float filter_element(uint d, uint h, uint w, uint result) {
    return load(push.b, ((d * push.size.x + h) * push.size.y + w) * push.results + result, TYPE);
}

float window_result(uint i) {
    uint result = i % push.results, q = i / push.results;
    uint x = q % push.count.y, y = q / push.count.y % push.count.x, layer = q / push.count.y / push.count.x;
    // As on the CPU: NaN is not the greatest of any, nor, of images, is an infinity.
    const uint least = IS_DEEP ? 0xff800000u : TYPE == T_F16 ? 0xc77fe000u : TYPE == T_BF16 ? 0xff7f0000u : 0xff7fffffu;
    float value = OP == GREATEST ? uintBitsToFloat(least) : 0.0f, found = 0.0f;
    for (uint d = 0; d < deep_size(); d++) {
        uint image = image_under(layer, d);
        if (IS_DEEP && image == NONE) continue;
        for (uint h = 0; h < push.size.x; h++)
            for (uint w = 0; w < push.size.y; w++) {
                uint row = down(y, h), column = right(x, w);
                if (row >= push.rows || column >= push.columns) continue;
                float element = load(push.a, image_at(image, row, column, OP == CONVOLVE ? result / each() : result), TYPE);
                if (OP == CONVOLVE) value += element * filter_element(d, h, w, result);
                else if (OP == MEAN) value += element;
                else if (element > value) value = element;
                found += 1.0f;
            }
    }
    return OP == MEAN ? value / found : value;
}

// Whether an element is the first of the greatest of its window.
bool is_first(uint image, uint y, uint x, uint row, uint column, uint channel) {
    float best = 0.0f;
    bool is_empty = true, is_best = false;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uint r = down(y, h), c = right(x, w);
            if (r >= push.rows || c >= push.columns) continue;
            float element = load(push.a, image_at(image, r, c, channel), TYPE);
            if (is_empty || element > best) {
                best = element;
                is_best = r == row && c == column;
            }
            is_empty = false;
        }
    return is_best;
}

// Elements of a window that are in the image, along an axis. Windows of pooling have no gaps.
uint covered(uint window, uint size, uint stride, uint before, uint extent) {
    uint start = window * stride;
    return min(start + size, before + extent) - max(start, before);
}

// How much of the gradient of a pooled window goes to one of its elements.
float share(uint layer, uint y, uint x, uint i, uint image, uint row, uint column, uint channel) {
    if (OP == FIRST_GRADIENT) return is_first(image, y, x, row, column, channel) ? 1.0f : 0.0f;
    if (OP == EACH_GRADIENT) {
        // TensorFlow takes what differs by less for the greatest.
        float difference = load(push.a, i, TYPE) - load(push.c, result_at(layer, y, x, channel), TYPE);
        return abs(rounded(difference, TYPE)) < rounded(1e-5f, TYPE) ? 1.0f : 0.0f;
    }
    uint count = covered(y, push.size.x, push.stride.x, push.before.x, push.rows)
        * covered(x, push.size.y, push.stride.y, push.before.y, push.columns);
    if (IS_DEEP) count *= covered(layer % push.deep_count, push.deep_size, push.deep_stride, push.deep_before, push.deep);
    return 1.0f / float(count);
}

float image_gradient(uint i) {
    uint channel = i % push.channels, q = i / push.channels;
    uint column = q % push.columns, row = q / push.columns % push.rows, image = q / push.columns / push.rows;
    float value = 0.0f;
    for (uint d = 0; d < deep_size(); d++) {
        uint layer = layer_over(image, d);
        if (IS_DEEP && layer == NONE) continue;
        for (uint h = 0; h < push.size.x; h++)
            for (uint w = 0; w < push.size.y; w++) {
                uvec2 window = windows(row, column, h, w);
                if (any(greaterThanEqual(window, push.count))) continue;
                if (OP == IMAGE_GRADIENT) {
                    for (uint result = channel * each(); result < (channel + 1) * each(); result++)
                        value += load(push.a, result_at(layer, window.x, window.y, result), TYPE) * filter_element(d, h, w, result);
                } else {
                    float part = share(layer, window.x, window.y, i, image, row, column, channel);
                    // An infinite gradient goes to no other element.
                    if (part > 0.0f) value += load(push.b, result_at(layer, window.x, window.y, channel), TYPE) * part;
                }
            }
    }
    return value;
}

// Windows in a turn of a loop: `EACH` in `src/kernels/window.rs`.
const uint EACH = 4;

shared float partial[256];

// The gradients of 16 results of an element of the filter, each by 16 threads; `unit` counts them.
void filter_gradients(uint unit) {
    uint blocks = (push.results + 15) / 16, lane = gl_LocalInvocationID.x;
    uint result = unit % blocks * 16 + lane % 16, of = unit / blocks;
    uint w = of % push.size.y, h = of / push.size.y % push.size.x, d = of / push.size.y / push.size.x;
    uint count = layers() * push.count.x * push.count.y;
    float value = 0.0f;
    if (result < push.results)
        for (uint first = lane / 16; first < count; first += 16 * EACH)
            [[unroll]] for (uint j = 0; j < EACH; j++) {
                uint q = first + 16 * j;
                uint row = down(q / push.count.y % push.count.x, h), column = right(q % push.count.y, w);
                uint image = image_under(q / push.count.y / push.count.x, d);
                if (q < count && row < push.rows && column < push.columns && !(IS_DEEP && image == NONE))
                    value += load(push.a, image_at(image, row, column, result / each()), TYPE)
                        * load(push.b, q * push.results + result, TYPE);
            }
    partial[lane] = value;
    barrier();
    for (uint other = 128; other > 8; other /= 2) {
        if (lane < other) partial[lane] += partial[lane + other];
        barrier();
    }
    if (lane < 16 && result < push.results)
        store(push.out_, of * push.results + result, TYPE, partial[lane]);
    barrier();
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    if (OP == FILTER_GRADIENT)
        for (uint unit = gl_WorkGroupID.x; unit < push.n; unit += gl_NumWorkGroups.x) filter_gradients(unit);
    else
        for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
            bool is_result = OP == GREATEST || OP == MEAN || OP == CONVOLVE;
            store(push.out_, i, TYPE, is_result ? window_result(i) : image_gradient(i));
        }
}
