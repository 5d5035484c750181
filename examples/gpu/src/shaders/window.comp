#version 460
// Convolutions and pooling with their gradients: a thread computes a result. The ops are in `src/kernels/window.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;

const uint CONVOLVE = 0, IMAGE_GRADIENT = 1, FILTER_GRADIENT = 2, GREATEST = 3, MEAN = 4, GREATEST_GRADIENT = 5,
           MEAN_GRADIENT = 6, CHANNELS = 7;

layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint n;
    // [images, rows, columns, channels], filters of [size, channels, results], and [images, count, results].
    uint images, rows, columns, channels, results;
    // Down and right, as `Windows` in `se_plugin::toolkit::window`.
    uvec2 size, stride, dilation, before, count;
} push;

// The place of an element of a window, or outside of the images.
uint down(uint window, uint element) { return window * push.stride.x + element * push.dilation.x - push.before.x; }
uint right(uint window, uint element) { return window * push.stride.y + element * push.dilation.y - push.before.y; }

uint image_at(uint image, uint row, uint column, uint channel) {
    return ((image * push.rows + row) * push.columns + column) * push.channels + channel;
}
uint result_at(uint image, uint y, uint x, uint result) {
    return ((image * push.count.x + y) * push.count.y + x) * push.results + result;
}
uint filter_at(uint h, uint w, uint channel, uint result) {
    return ((h * push.size.y + w) * push.channels + channel) * push.results + result;
}

float window_result(uint i) {
    uint result = i % push.results, q = i / push.results;
    uint x = q % push.count.y, y = q / push.count.y % push.count.x, image = q / push.count.y / push.count.x;
    float value = OP == GREATEST ? uintBitsToFloat(0xff800000u) : 0.0, found = 0.0;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uint row = down(y, h), column = right(x, w);
            if (row >= push.rows || column >= push.columns) continue;
            if (OP == CONVOLVE) {
                for (uint channel = 0; channel < push.channels; channel++)
                    value += load(push.a, image_at(image, row, column, channel), TYPE)
                        * load(push.b, filter_at(h, w, channel, result), TYPE);
            } else if (OP == CHANNELS) {
                uint each = push.results / push.channels, channel = result / each;
                value += load(push.a, image_at(image, row, column, channel), TYPE)
                    * load(push.b, ((h * push.size.y + w) * push.channels + channel) * each + result % each, TYPE);
            } else {
                float element = load(push.a, image_at(image, row, column, result), TYPE);
                if (OP == MEAN) value += element;
                else if (element > value || isnan(element)) value = element;
                found += 1.0;
            }
        }
    return OP == MEAN ? value / found : value;
}

float filter_gradient(uint i) {
    uint result = i % push.results, q = i / push.results;
    uint channel = q % push.channels, w = q / push.channels % push.size.y, h = q / push.channels / push.size.y;
    float value = 0.0;
    for (uint image = 0; image < push.images; image++)
        for (uint y = 0; y < push.count.x; y++) {
            uint row = down(y, h);
            if (row >= push.rows) continue;
            // A sum a row: fewer additions to a large one.
            float part = 0.0;
            for (uint x = 0; x < push.count.y; x++) {
                uint column = right(x, w);
                if (column < push.columns)
                    part += load(push.a, image_at(image, row, column, channel), TYPE)
                        * load(push.b, result_at(image, y, x, result), TYPE);
            }
            value += part;
        }
    return value;
}

// How much of the gradient of a pooled window goes to one of its elements.
float share(uint image, uint y, uint x, uint row, uint column, uint channel) {
    float found = 0.0, best = 0.0;
    bool is_best = false;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uint r = down(y, h), c = right(x, w);
            if (r >= push.rows || c >= push.columns) continue;
            if (OP == GREATEST_GRADIENT) {
                float element = load(push.a, image_at(image, r, c, channel), TYPE);
                if (found == 0.0 || element > best) {
                    best = element;
                    is_best = r == row && c == column;
                }
            }
            found += 1.0;
        }
    return OP == MEAN_GRADIENT ? 1.0 / found : is_best ? 1.0 : 0.0;
}

float image_gradient(uint i) {
    uint channel = i % push.channels, q = i / push.channels;
    uint column = q % push.columns, row = q / push.columns % push.rows, image = q / push.columns / push.rows;
    float value = 0.0;
    for (uint h = 0; h < push.size.x; h++) {
        uint y = row + push.before.x - h * push.dilation.x;
        if (y % push.stride.x != 0 || y / push.stride.x >= push.count.x || h * push.dilation.x > row + push.before.x) continue;
        y /= push.stride.x;
        for (uint w = 0; w < push.size.y; w++) {
            uint x = column + push.before.y - w * push.dilation.y;
            if (x % push.stride.y != 0 || x / push.stride.y >= push.count.y || w * push.dilation.y > column + push.before.y) continue;
            x /= push.stride.y;
            if (OP == IMAGE_GRADIENT) {
                for (uint result = 0; result < push.results; result++)
                    value += load(push.b, filter_at(h, w, channel, result), TYPE)
                        * load(push.a, result_at(image, y, x, result), TYPE);
            } else {
                value += load(push.b, result_at(image, y, x, channel), TYPE) * share(image, y, x, row, column, channel);
            }
        }
    }
    return value;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        float value;
        if (OP == FILTER_GRADIENT) value = filter_gradient(i);
        else if (OP == IMAGE_GRADIENT || OP == GREATEST_GRADIENT || OP == MEAN_GRADIENT) value = image_gradient(i);
        else value = window_result(i);
        store(push.out_, i, TYPE, value);
    }
}
