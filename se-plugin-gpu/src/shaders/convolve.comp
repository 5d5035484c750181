#version 460
// Convolutions and their gradients, as products of matrices whose elements are looked up in the images. The ops are in
// `src/kernels/convolve.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const uint OP = 0;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const uint OUT = 0;
layout(constant_id = 4) const bool IS_DEEP = false;

#define TENSORS a, b, out_
#include "window.glsl"

// Where `a` is the images, the gradient of the results, and the images, and `b` the filter, the filter, and the gradient.
const uint CONVOLVE = 0, IMAGE_GRADIENT = 1, FILTER_GRADIENT = 2;

const bool A_ALONG_K = OP != FILTER_GRADIENT, B_ALONG_K = OP == IMAGE_GRADIENT;

// Channels and results of a group; the filter is [size, channels of a group, results].
uint channels() { return push.channels / push.groups; }
uint results() { return push.results / push.groups; }

// The windows of all images, and the elements of a window in a group.
uint positions() { return layers() * push.count.x * push.count.y; }
uint size() { return deep_size() * push.size.x * push.size.y; }
uint elements() { return size() * channels(); }
uint places() { return images() * push.rows * push.columns; }

// The row and the column with this index, and the image: of a filter what is in its depth.
uvec2 within(uint at, uvec2 size) { return uvec2(at / size.y % size.x, at % size.y); }
uint image_of(uint at, uvec2 size) { return at / size.y / size.x; }

// An element of the images under a window.
uint under(uint group, uint position, uint element) {
    if (position >= positions() || element >= elements()) return NONE;
    uint of = element / channels();
    uvec2 window = within(position, push.count), e = within(of, push.size);
    uint image = image_under(image_of(position, push.count), image_of(of, push.size));
    uint row = down(window.x, e.x), column = right(window.y, e.y);
    if (row >= push.rows || column >= push.columns || (IS_DEEP && image == NONE)) return NONE;
    return image_at(image, row, column, group * channels() + element % channels());
}

// Gradients of filters are sums of `n` positions each, one for each batch of groups.
uint group_of(uint batch) { return batch % push.groups; }

uint a_index(uint batch, uint i, uint k) {
    uint group = group_of(batch);
    if (OP == CONVOLVE) return under(group, i, k);
    if (OP == FILTER_GRADIENT) return under(group, k, i);
    if (i >= places()) return NONE;
    uint of = k / results();
    uvec2 image = uvec2(push.rows, push.columns), place = within(i, image), e = within(of, push.size);
    uint layer = layer_over(image_of(i, image), image_of(of, push.size));
    uvec2 window = windows(place.x, place.y, e.x, e.y);
    if (any(greaterThanEqual(window, push.count)) || (IS_DEEP && layer == NONE)) return NONE;
    return result_at(layer, window.x, window.y, group * results() + k % results());
}

uint b_index(uint batch, uint j, uint k) {
    uint group = group_of(batch);
    if (OP == IMAGE_GRADIENT) {
        if (j >= channels()) return NONE;
        return (k / results() * channels() + j) * push.results + group * results() + k % results();
    }
    if (j >= results()) return NONE;
    return k * push.results + group * results() + j;
}

void finish(uint batch, uint i, uint j, float sum) {
    uint group = group_of(batch);
    if (OP == IMAGE_GRADIENT) {
        if (i < places() && j < channels()) store(push.out_, i * push.channels + group * channels() + j, OUT, sum);
    } else if (j < results()) {
        uint rows = OP == CONVOLVE ? positions() : elements();
        if (i < rows) store(push.out_, (batch / push.groups * rows + i) * push.results + group * results() + j, OUT, sum);
    }
}

#include "products.glsl"

void main() {
    if (OP == FILTER_GRADIENT) {
        uint parts = positions() == 0 ? 1 : (positions() - 1) / push.n + 1;
        FOR_EACH_TILE(push.groups * parts, elements(), results()) {
            uint from = batch / push.groups * push.n;
            multiply(batch, row, column, from, min(from + push.n, positions()));
        }
    } else {
        uint rows = OP == CONVOLVE ? positions() : places(), columns = OP == CONVOLVE ? results() : channels();
        uint inner = OP == CONVOLVE ? elements() : size() * results();
        FOR_EACH_TILE(push.groups, rows, columns) multiply(batch, row, column, 0, inner);
    }
}
