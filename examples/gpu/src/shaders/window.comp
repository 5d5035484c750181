#version 460
// Pooling, and convolutions of each channel by itself, with their gradients: a thread computes a result, or, of the gradient
// of a filter, 16 do. The ops are in `src/kernels/window.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "window.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;

const uint GREATEST = 0, MEAN = 1, GREATEST_GRADIENT = 2, MEAN_GRADIENT = 3, CONVOLVE = 4, IMAGE_GRADIENT = 5,
           FILTER_GRADIENT = 6;

// Results of a channel.
uint each() { return push.results / push.channels; }

float filter_element(uint h, uint w, uint result) { return load(push.b, (h * push.size.y + w) * push.results + result, TYPE); }

float window_result(uint i) {
    uint result = i % push.results, q = i / push.results;
    uint x = q % push.count.y, y = q / push.count.y % push.count.x, image = q / push.count.y / push.count.x;
    float value = OP == GREATEST ? uintBitsToFloat(0xff800000u) : 0.0f, found = 0.0f;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uint row = down(y, h), column = right(x, w);
            if (row >= push.rows || column >= push.columns) continue;
            float element = load(push.a, image_at(image, row, column, OP == CONVOLVE ? result / each() : result), TYPE);
            if (OP == CONVOLVE) value += element * filter_element(h, w, result);
            else if (OP == MEAN) value += element;
            else if (element > value || isnan(element)) value = element;
            found += 1.0f;
        }
    return OP == MEAN ? value / found : value;
}

// How much of the gradient of a pooled window goes to one of its elements.
float share(uint image, uint y, uint x, uint row, uint column, uint channel) {
    float found = 0.0f, best = 0.0f;
    bool is_best = false;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uint r = down(y, h), c = right(x, w);
            if (r >= push.rows || c >= push.columns) continue;
            if (OP == GREATEST_GRADIENT) {
                float element = load(push.a, image_at(image, r, c, channel), TYPE);
                if (found == 0.0f || element > best) {
                    best = element;
                    is_best = r == row && c == column;
                }
            }
            found += 1.0f;
        }
    return OP == MEAN_GRADIENT ? 1.0f / found : is_best ? 1.0f : 0.0f;
}

float image_gradient(uint i) {
    uint channel = i % push.channels, q = i / push.channels;
    uint column = q % push.columns, row = q / push.columns % push.rows, image = q / push.columns / push.rows;
    float value = 0.0f;
    for (uint h = 0; h < push.size.x; h++)
        for (uint w = 0; w < push.size.y; w++) {
            uvec2 window = windows(row, column, h, w);
            if (any(greaterThanEqual(window, push.count))) continue;
            if (OP == IMAGE_GRADIENT) {
                for (uint result = channel * each(); result < (channel + 1) * each(); result++)
                    value += load(push.a, result_at(image, window.x, window.y, result), TYPE) * filter_element(h, w, result);
            } else {
                value += load(push.b, result_at(image, window.x, window.y, channel), TYPE)
                    * share(image, window.x, window.y, row, column, channel);
            }
        }
    return value;
}

shared float partial[256];

// The gradients of 16 results of an element of the filter, each by 16 threads; `unit` counts them.
void filter_gradients(uint unit) {
    uint blocks = (push.results + 15) / 16, lane = gl_LocalInvocationID.x;
    uint result = unit % blocks * 16 + lane % 16, h = unit / blocks / push.size.y, w = unit / blocks % push.size.y;
    float value = 0.0f;
    if (result < push.results)
        for (uint q = lane / 16; q < push.images * push.count.x * push.count.y; q += 16) {
            uint row = down(q / push.count.y % push.count.x, h), column = right(q % push.count.y, w);
            if (row < push.rows && column < push.columns)
                value += load(push.a, image_at(q / push.count.y / push.count.x, row, column, result / each()), TYPE)
                    * load(push.b, q * push.results + result, TYPE);
        }
    partial[lane] = value;
    barrier();
    for (uint other = 128; other > 8; other /= 2) {
        if (lane < other) partial[lane] += partial[lane + other];
        barrier();
    }
    if (lane < 16 && result < push.results)
        store(push.out_, unit / blocks * push.results + result, TYPE, partial[lane]);
    barrier();
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    if (OP == FILTER_GRADIENT)
        for (uint unit = gl_WorkGroupID.x; unit < push.n; unit += gl_NumWorkGroups.x) filter_gradients(unit);
    else
        for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
            bool is_gradient = OP == IMAGE_GRADIENT || OP == GREATEST_GRADIENT || OP == MEAN_GRADIENT;
            store(push.out_, i, TYPE, is_gradient ? image_gradient(i) : window_result(i));
        }
}
