#version 460
// Group normalization, after the sums of parts of each image's channels, which `normalize.comp` computes: mean and variance of each
// group, and the gradients. The launches are in `src/kernels/group_norm.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
// Whether four channels are read at once: their number is a multiple of four, and all tensors are aligned.
layout(constant_id = 2) const bool IS_WIDE = false;

layout(push_constant, scalar) uniform Push {
    uint64_t x, dy, scale, mean, variance, dx, dscale, doffset;
    // Two rows of sums for each part. Then the sums of all parts, in one tensor for `dy` and its products with what is normalized, and
    // for each group the means of both times the scale.
    uint64_t sums, totals, dy_means, product_means;
    // Elements of a channel of an image.
    uint images, count, channels;
    // Channels of a group.
    uint width;
    // Neighbouring threads that compute a group, or a channel each.
    uint across;
    // Elements of a channel in a part, and parts.
    uint part, parts;
    float epsilon;
} push;

#include "neighbours.glsl"
#include "channel_groups.glsl"
#include "row_sums.glsl"

const uint MOMENTS = 0, GROUPS = 1, CHANNELS = 2, ELEMENTS = 3;

// Where the sums of a group's first part begin.
uint first_sum(uint image, uint channel) { return 2 * image * push.parts * push.channels + channel; }

// Squares are of what elements differ from the mean of their part: what that differs from the mean of all is added.
void moments(uint row, uint image, uint channel, uint at, bool is_one) {
    uint start = first_sum(image, channel), end = is_one ? push.parts * push.width : 0;
    float n = float(push.count) * float(push.width), sum = 0.0f, squares = 0.0f;
    for (uint i = at; i < end; i += push.across)
        sum = sum + F32(push.sums).v[start + i / push.width * 2 * push.channels + i % push.width];
    Sums sums = total(sum, 0.0f);
    float mean = sums.first / n;
    for (uint i = at; i < end; i += push.across) {
        uint part = i / push.width, of_part = start + part * 2 * push.channels + i % push.width;
        float count = float(min(push.count - part * push.part, push.part));
        float between = F32(push.sums).v[of_part] / count - mean;
        squares = squares + F32(push.sums).v[of_part + push.channels] + between * between * count;
    }
    sums = total(squares, 0.0f);
    if (!is_one || at > 0) return;
    F32(push.mean).v[row] = mean;
    F32(push.variance).v[row] = sums.first / n;
}

void groups(uint row, uint image, uint channel, uint at, bool is_one) {
    float slopes = 0.0f, products = 0.0f, n = float(push.count) * float(push.width);
    for (uint i = at; is_one && i < push.width; i += push.across) {
        uint start = first_sum(image, channel + i);
        float dy = 0.0f, product = 0.0f;
        for (uint part = 0; part < push.parts; part++) {
            dy = dy + F32(push.sums).v[start + 2 * part * push.channels];
            product = product + F32(push.sums).v[start + (2 * part + 1) * push.channels];
        }
        product = product * (1.0f / sqrt(F32(push.variance).v[row] + push.epsilon));
        F32(push.totals).v[image * push.channels + channel + i] = dy;
        F32(push.totals).v[(push.images + image) * push.channels + channel + i] = product;
        slopes = slopes + dy * F32(push.scale).v[channel + i];
        products = products + product * F32(push.scale).v[channel + i];
    }
    Sums sums = total(slopes, products);
    if (!is_one || at > 0) return;
    F32(push.dy_means).v[row] = sums.first / n;
    F32(push.product_means).v[row] = sums.second / n;
}

// The gradients of scale and offset: threads in a column add the totals of images for one channel.
void channels() {
    uint lane = gl_LocalInvocationID.x, across = push.across, down = 256 / across, row = lane / across;
    for (uint from = gl_WorkGroupID.x * across; from < push.channels; from += gl_NumWorkGroups.x * across) {
        uint channel = from + lane % across;
        bool is_one = channel < push.channels;
        float dy = 0.0f, product = 0.0f;
        for (uint image = row; is_one && image < push.images; image += down) {
            dy = dy + F32(push.totals).v[image * push.channels + channel];
            product = product + F32(push.totals).v[(push.images + image) * push.channels + channel];
        }
        barrier();
        first_of[lane] = dy;
        second_of[lane] = product;
        barrier();
        if (!is_one || row > 0) continue;
        for (uint other = 1; other < down; other++) {
            dy = dy + first_of[lane + other * across];
            product = product + second_of[lane + other * across];
        }
        F32(push.doffset).v[channel] = dy;
        F32(push.dscale).v[channel] = product;
    }
}

void gradient(uint i) {
    uint channel = i % push.channels, image = i / push.channels / push.count;
    vec4 variance = of_groups(push.variance, image, channel) + vec4(push.epsilon);
    vec4 reciprocal = vec4(1.0f / sqrt(variance[0]), 1.0f / sqrt(variance[1]), 1.0f / sqrt(variance[2]), 1.0f / sqrt(variance[3]));
    vec4 normal = (elements(push.x, i) - of_groups(push.mean, image, channel)) * reciprocal;
    vec4 slope = elements(push.dy, i) * floats(push.scale, channel);
    vec4 away = of_groups(push.dy_means, image, channel) + normal * of_groups(push.product_means, image, channel);
    store_elements(push.dx, i, TYPE, (slope - away) * reciprocal);
}

void main() {
    if (OP == CHANNELS) {
        channels();
        return;
    }
    if (OP == ELEMENTS) {
        uint n = push.images * push.count * push.channels / V, step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
        for (uint i = gl_GlobalInvocationID.x; i < n; i += step) gradient(i * V);
        return;
    }
    uint lane = gl_LocalInvocationID.x, down = 256 / push.across, at = lane % push.across;
    uint of_image = push.channels / push.width, rows = push.images * of_image;
    for (uint from = gl_WorkGroupID.x * down; from < rows; from += gl_NumWorkGroups.x * down) {
        uint row = from + lane / push.across, image = row / of_image, channel = row % of_image * push.width;
        if (OP == MOMENTS) moments(row, image, channel, at, row < rows);
        else groups(row, image, channel, at, row < rows);
    }
}
