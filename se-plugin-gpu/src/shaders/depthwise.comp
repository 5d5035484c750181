#version 460
// Convolutions of each channel by itself, with their gradients. A thread computes V neighbouring results, or channels of the gradient
// of the images; of the gradient of the filter a workgroup computes a part of the sums. The ops are in
// `src/kernels/depthwise.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const uint OUT = 0;
layout(constant_id = 3) const bool IS_DEEP = false;
// Whether four neighbours are read at once: a channel has one result, their number is a multiple of four, and all are aligned.
layout(constant_id = 4) const bool IS_WIDE = false;
// The threads along the results, of the gradient of the filter.
layout(constant_id = 5) const uint ACROSS = 1;

// Where `a` is the images, the gradient of the results, and the images, and `b` the filter, the filter, and the gradient.
#define TENSORS a, b, out_
#include "window.glsl"
#include "neighbours.glsl"

const uint CONVOLVE = 0, IMAGE_GRADIENT = 1, FILTER_GRADIENT = 2;

// Results of a channel.
uint each() { return IS_WIDE ? 1 : push.results / push.channels; }

uint filter_at(uint d, uint h, uint w, uint result) { return ((d * push.size.x + h) * push.size.y + w) * push.results + result; }

vec4 results(uint result, uint q) {
    uint x = q % push.count.y, y = q / push.count.y % push.count.x, layer = q / push.count.y / push.count.x;
    vec4 value = vec4(0.0f);
    for (uint d = 0; d < deep_size(); d++) {
        uint image = image_under(layer, d);
        if (IS_DEEP && image == NONE) continue;
        for (uint h = 0; h < push.size.x; h++) {
            uint row = down(y, h);
            if (row >= push.rows) continue;
            for (uint w = 0; w < push.size.y; w++) {
                uint column = right(x, w);
                if (column >= push.columns) continue;
                vec4 element = elements(push.a, image_at(image, row, column, result / each()));
                value = value + element * elements(push.b, filter_at(d, h, w, result));
            }
        }
    }
    return value;
}

vec4 image_gradient(uint channel, uint q) {
    uint column = q % push.columns, row = q / push.columns % push.rows, image = q / push.columns / push.rows;
    vec4 value = vec4(0.0f);
    for (uint d = 0; d < deep_size(); d++) {
        uint layer = layer_over(image, d);
        if (IS_DEEP && layer == NONE) continue;
        for (uint h = 0; h < push.size.x; h++)
            for (uint w = 0; w < push.size.y; w++) {
                uvec2 window = windows(row, column, h, w);
                if (any(greaterThanEqual(window, push.count))) continue;
                for (uint result = channel * each(); result < (channel + 1) * each(); result += V)
                    value = value + elements(push.a, result_at(layer, window.x, window.y, result)) * elements(push.b, filter_at(d, h, w, result));
            }
    }
    return value;
}

// Positions in a turn of a loop, and elements of a row of the filter, each with its own sum: `src/kernels/depthwise.rs` has both.
const uint EACH = 4, TAPS = 4;

shared vec4 partial[256];

// The sum of TAPS elements of the filter from (d, h, first_w) on, over the positions of a part.
void filter_gradient(uint d, uint h, uint first_w, uint first_result) {
    const uint STEP = 256 / ACROSS;
    uint lane = gl_LocalInvocationID.x, result = first_result + lane % ACROSS * V, count = layers() * push.count.x * push.count.y;
    uint q = gl_WorkGroupID.y * push.n + lane / ACROSS, end = min((gl_WorkGroupID.y + 1) * push.n, count);
    // The place of a position is carried on instead of divided.
    uint x = q % push.count.y, y = q / push.count.y % push.count.x, layer = q / push.count.y / push.count.x;
    uint x_step = STEP % push.count.y, y_step = STEP / push.count.y % push.count.x, layer_step = STEP / push.count.y / push.count.x;
    vec4 sums[TAPS];
    [[unroll]] for (uint tap = 0; tap < TAPS; tap++) sums[tap] = vec4(0.0f);
    for (; q < end && result < push.results; q += EACH * STEP)
        [[unroll]] for (uint i = 0; i < EACH; i++) {
            uint row = down(y, h), image = image_under(layer, d);
            if (q + i * STEP < end && row < push.rows && !(IS_DEEP && image == NONE)) {
                vec4 gradient = elements(push.b, (q + i * STEP) * push.results + result);
                [[unroll]] for (uint tap = 0; tap < TAPS; tap++) {
                    uint column = right(x, first_w + tap);
                    if (first_w + tap < push.size.y && column < push.columns)
                        sums[tap] = sums[tap] + gradient * elements(push.a, image_at(image, row, column, result / each()));
                }
            }
            x += x_step;
            y += y_step;
            layer += layer_step;
            if (x >= push.count.y) { x -= push.count.y; y++; }
            if (y >= push.count.x) { y -= push.count.x; layer++; }
        }
    uint of_part = gl_WorkGroupID.y * deep_size() * push.size.x * push.size.y * push.results;
    [[unroll]] for (uint tap = 0; tap < TAPS; tap++) {
        partial[lane] = sums[tap];
        barrier();
        for (uint other = 128; other >= ACROSS; other /= 2) {
            if (lane < other) partial[lane] = partial[lane] + partial[lane + other];
            barrier();
        }
        if (lane < ACROSS && result < push.results && first_w + tap < push.size.y)
            store_elements(push.out_, of_part + filter_at(d, h, first_w + tap, result), OUT, partial[lane]);
        barrier();
    }
}

void main() {
    if (OP == FILTER_GRADIENT) {
        uint blocks = (push.results - 1) / (ACROSS * V) + 1, across = (push.size.y - 1) / TAPS + 1;
        uint units = deep_size() * push.size.x * across * blocks;
        for (uint unit = gl_WorkGroupID.x; unit < units; unit += gl_NumWorkGroups.x) {
            uint of = unit / blocks, h = of / across % push.size.x;
            filter_gradient(of / across / push.size.x, h, of % across * TAPS, unit % blocks * ACROSS * V);
        }
        return;
    }
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, line = (OP == CONVOLVE ? push.results : push.channels) / V;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint at = i % line * V;
        store_elements(push.out_, i * V, OUT, OP == CONVOLVE ? results(at, i / line) : image_gradient(at, i / line));
    }
}
