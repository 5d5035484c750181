#version 460
// Pooling, and its gradients: a thread computes a result. The ops are in `src/kernels/pool.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const bool IS_DEEP = false;

#define TENSORS a, b, c, out_
#include "window.glsl"

// The gradient of the greatest goes to the first of them, or to each.
const uint GREATEST = 0, MEAN = 1, FIRST_GRADIENT = 2, MEAN_GRADIENT = 3, EACH_GRADIENT = 4;

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
                float element = load(push.a, image_at(image, row, column, result), TYPE);
                if (OP == MEAN) value += element;
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
                float part = share(layer, window.x, window.y, i, image, row, column, channel);
                // An infinite gradient goes to no other element.
                if (part > 0.0f) value += load(push.b, result_at(layer, window.x, window.y, channel), TYPE) * part;
            }
    }
    return value;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step)
        store(push.out_, i, TYPE, OP == GREATEST || OP == MEAN ? window_result(i) : image_gradient(i));
}
