#version 460
// Mean and variance of each row, and the gradient of layer normalization for its elements. `across` neighbouring threads compute a row, of
// V neighbours at once. The gradients of scale and offset are sums over all rows: `normalize.comp`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
// Whether four neighbours are read at once: rows have a multiple of four, and all tensors are aligned.
layout(constant_id = 2) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t x, dy, scale, mean, variance, dx;
    uint rows, columns, across;
    float epsilon;
} push;

#include "neighbours.glsl"

const uint MOMENTS = 0;

#include "row_sums.glsl"

float sum_of(vec4 x) { return IS_WIDE ? (x[0] + x[1]) + (x[2] + x[3]) : x[0]; }

void moments(uint row, uint end, uint at, uint step) {
    uint start = row * push.columns;
    float sum = 0.0f, squares = 0.0f;
    for (uint i = at; i < end; i += step) sum = sum + sum_of(elements(push.x, start + i));
    Sums sums = total(sum, 0.0f);
    float mean = sums.first / float(push.columns);
    for (uint i = at; i < end; i += step) {
        vec4 difference = elements(push.x, start + i) - vec4(mean);
        squares = squares + sum_of(difference * difference);
    }
    sums = total(squares, 0.0f);
    if (row >= push.rows || at > 0) return;
    F32(push.mean).v[row] = mean;
    F32(push.variance).v[row] = sums.first / float(push.columns);
}

void gradient(uint row, uint end, uint at, uint step) {
    uint start = row * push.columns, one = min(row, push.rows - 1);
    float mean = F32(push.mean).v[one], reciprocal = 1.0f / sqrt(F32(push.variance).v[one] + push.epsilon);
    float slopes = 0.0f, products = 0.0f;
    for (uint i = at; i < end; i += step) {
        vec4 slope = elements(push.dy, start + i) * floats(push.scale, i);
        vec4 normal = (elements(push.x, start + i) - vec4(mean)) * vec4(reciprocal);
        slopes = slopes + sum_of(slope);
        products = products + sum_of(slope * normal);
    }
    Sums sums = total(slopes, products);
    float slope_mean = sums.first / float(push.columns), product_mean = sums.second / float(push.columns);
    for (uint i = at; i < end; i += step) {
        vec4 slope = elements(push.dy, start + i) * floats(push.scale, i);
        vec4 normal = (elements(push.x, start + i) - vec4(mean)) * vec4(reciprocal);
        vec4 dx = (slope - (vec4(slope_mean) + normal * vec4(product_mean))) * vec4(reciprocal);
        store_elements(push.dx, start + i, TYPE, dx);
    }
}

void main() {
    uint lane = gl_LocalInvocationID.x, down = 256 / push.across;
    for (uint from = gl_WorkGroupID.x * down; from < push.rows; from += gl_NumWorkGroups.x * down) {
        uint row = from + lane / push.across, at = lane % push.across * V;
        uint end = row < push.rows ? push.columns : 0;
        if (OP == MOMENTS) moments(row, end, at, push.across * V);
        else gradient(row, end, at, push.across * V);
    }
}
