#version 460
// Batch normalization, its gradient, mean and variance alone, and the gradients of scale and offset of layer normalization. Of group
// normalization the first stage alone, for each image: `group_norm.comp` has the rest. The threads of a workgroup are rows of `across` neighbours, each with V channels; the workgroup computes a part of the elements of these channels. The first stage sums each part. In the last one each workgroup adds
// the sums of all parts, in the same order, and computes the elements of its own. The stages are in `src/kernels/normalize.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const bool IS_TRAINING = false;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const bool IS_LAST = false;
// Whether four channels are read at once: their number is a multiple of four, and all tensors are aligned.
layout(constant_id = 4) const bool IS_WIDE = false;
// Whether there is a scale, which is else 1. Of moments: whether there is a bias, in the place of the scale. The mean with it
// is written to `y`, and is that of the averages.
layout(constant_id = 5) const bool HAS_SCALE = true;
// Whether there are averages of moments, as `mean` and `variance`: `epsilon` times them, and `factor` times the new ones. Of the
// gradient: whether that of a bias of `x` is written to `saved_mean`.
layout(constant_id = 6) const bool HAS_AVERAGES = false;

layout(push_constant, scalar) uniform Push {
    // The gradient has `dy` in the place of `offset`, and `dx`, `dscale`, `doffset` in those of the first outputs.
    uint64_t x, scale, offset, mean, variance, y, new_mean, new_variance, saved_mean, saved_variance;
    // Two rows of sums for each part.
    uint64_t sums;
    // Elements of a channel.
    uint count, channels;
    float epsilon;
    // How much of the new is in the running mean and variance.
    float factor;
    uint across;
    // Elements of a channel in a part, and parts whose sums there are.
    uint part, parts;
    // Of group normalization: images, and the channels of a group.
    uint images, width;
} push;

#include "neighbours.glsl"
#include "channel_groups.glsl"

// Elements in a turn of a loop, which are all read before one is used: `EACH` in `src/kernels/normalize.rs`.
const uint EACH = 4;

// The last two are of a mean and a variance for each row, and for each group of an image, and not for each channel.
const uint NORMALIZE = 0, GRADIENT = 1, MOMENTS = 2, ROW_GRADIENT = 3, GROUP_GRADIENT = 4;
const bool IS_GRADIENT = OP == GRADIENT || OP == ROW_GRADIENT || OP == GROUP_GRADIENT, IS_VARIANCE = IS_TRAINING && !IS_GRADIENT;

vec4 reciprocal_root(vec4 x) {
    return vec4(1.0f / sqrt(x[0]), 1.0f / sqrt(x[1]), 1.0f / sqrt(x[2]), 1.0f / sqrt(x[3]));
}

// 0, unless `x` is not finite.
float zero_of(float x) { return isnan(x) || isinf(x) ? uintBitsToFloat(0x7fc00000u) : 0.0f; }

// Of so many elements of each channel: their sum, and the sum of the squares of what they differ from their mean. Of a gradient:
// the sums of `dy`, and of its products with what elements differ from the mean.
struct Sums { vec4 first, second; float count; };

Sums none() {
    Sums sums;
    sums.first = vec4(0.0f);
    sums.second = vec4(0.0f);
    sums.count = 0.0f;
    return sums;
}

Sums merged(Sums a, Sums b) {
    if (a.count == 0.0f) return b;
    if (b.count == 0.0f) return a;
    if (IS_VARIANCE) {
        vec4 between = b.first * (1.0f / b.count) - a.first * (1.0f / a.count);
        a.second = a.second + between * between * (a.count * b.count / (a.count + b.count));
    }
    a.first = a.first + b.first;
    a.second = a.second + b.second;
    a.count += b.count;
    return a;
}

shared vec4 first_of[256];
shared vec4 second_of[256];
shared float count_of[256];

void put(uint lane, Sums sums) {
    first_of[lane] = sums.first;
    second_of[lane] = sums.second;
    count_of[lane] = sums.count;
}
Sums get(uint lane) {
    Sums sums;
    sums.first = first_of[lane];
    sums.second = second_of[lane];
    sums.count = count_of[lane];
    return sums;
}

// The sums of all threads with the same channels.
Sums total(Sums own) {
    uint lane = gl_LocalInvocationID.x, across = push.across;
    barrier();
    put(lane, own);
    barrier();
    for (uint other = 128; other >= across; other /= 2) {
        if (lane < other) put(lane, merged(get(lane), get(lane + other)));
        barrier();
    }
    return get(lane % across);
}

vec4 row_normal(vec4 x, uint row) {
    float reciprocal = 1.0f / sqrt(F32(push.variance).v[row] + push.epsilon);
    return (x - vec4(F32(push.mean).v[row])) * vec4(reciprocal);
}

// The sums of a thread's elements. Squares are of what elements differ from the first, so that a large mean takes no digits.
Sums sums_of(uint image, uint channel, uint first, uint end, uint step) {
    Sums sums = none();
    if (first >= end) return sums;
    vec4 from, differences = vec4(0.0f);
    if (OP == GRADIENT) from = floats(push.mean, channel);
    else if (OP == ROW_GRADIENT) from = vec4(0.0f);
    else if (OP == GROUP_GRADIENT) from = of_groups(push.mean, image, channel);
    else from = elements(push.x, first * push.channels + channel);
    vec4 x[EACH], dy[EACH];
    for (uint row = first; row < end; row += EACH * step) {
        [[unroll]] for (uint j = 0; j < EACH; j++) {
            uint i = min(row + j * step, end - 1) * push.channels + channel;
            x[j] = elements(push.x, i);
            if (IS_GRADIENT) dy[j] = elements(push.offset, i);
        }
        [[unroll]] for (uint j = 0; j < EACH; j++) {
            if (row + j * step >= end) continue;
            vec4 difference = x[j] - from;
            if (OP == ROW_GRADIENT) difference = row_normal(x[j], row + j * step);
            sums.count += 1.0f;
            if (IS_GRADIENT) {
                sums.first = sums.first + dy[j];
                sums.second = sums.second + dy[j] * difference;
            } else {
                sums.first = sums.first + x[j];
                differences = differences + difference;
                sums.second = sums.second + difference * difference;
            }
        }
    }
    if (!IS_GRADIENT) sums.second = sums.second - differences * differences * (1.0f / sums.count);
    return sums;
}

// The sums of all parts.
Sums sums_of_parts(uint channel, uint first, uint step) {
    Sums sums = none();
    for (uint part = first; part < push.parts; part += step) {
        uint at = 2 * part * push.channels + channel;
        Sums one;
        one.first = floats(push.sums, at);
        one.second = floats(push.sums, at + push.channels);
        one.count = float(min(push.count - part * push.part, push.part));
        sums = merged(sums, one);
    }
    return sums;
}

// Computes the elements, of which each is read and written once.
void finish_elements(uint channel, uint first, uint end, uint step, vec4 mean, vec4 reciprocal, vec4 dy_mean, vec4 product_mean) {
    vec4 scale = vec4(1.0f), offset = vec4(0.0f);
    if (HAS_SCALE) scale = floats(push.scale, channel);
    vec4 slope = scale * reciprocal;
    if (!IS_GRADIENT) offset = floats(push.offset, channel);
    vec4 x[EACH], dy[EACH];
    for (uint row = first; row < end; row += EACH * step) {
        [[unroll]] for (uint j = 0; j < EACH; j++) {
            uint i = min(row + j * step, end - 1) * push.channels + channel;
            x[j] = elements(push.x, i);
            if (IS_GRADIENT) dy[j] = elements(push.offset, i);
        }
        [[unroll]] for (uint j = 0; j < EACH; j++) {
            if (row + j * step >= end) continue;
            vec4 normal = (x[j] - mean) * reciprocal, y;
            if (!IS_GRADIENT) y = normal * scale + offset;
            else if (IS_TRAINING) y = slope * (dy[j] - (dy_mean + normal * product_mean));
            else y = slope * dy[j];
            store_elements(push.y, (row + j * step) * push.channels + channel, TYPE, y);
        }
    }
}

// `all` are the sums of the channel.
void finish(uint channel, uint first, uint end, uint step, Sums all) {
    if (OP == ROW_GRADIENT) {
        if (gl_LocalInvocationID.x >= push.across) return;
        store_floats(push.new_mean, channel, all.second);
        store_floats(push.new_variance, channel, all.first);
        return;
    }
    float part = 1.0f / float(push.count);
    vec4 mean, variance;
    if (IS_VARIANCE) {
        mean = all.first * part;
        variance = all.second * part;
    } else {
        mean = floats(push.mean, channel);
        variance = floats(push.variance, channel);
    }
    vec4 reciprocal = reciprocal_root(variance + vec4(push.epsilon)), normal = all.second * reciprocal;
    if (OP != MOMENTS) finish_elements(channel, first, end, step, mean, reciprocal, all.first * part, normal * part);
    // The first part's thread in the first row.
    if (gl_WorkGroupID.y > 0 || gl_LocalInvocationID.x >= push.across) return;
    if (IS_GRADIENT) {
        store_floats(push.new_mean, channel, normal);
        store_floats(push.new_variance, channel, all.first);
        // What all elements are shifted by, the mean takes away.
        vec4 zero = vec4(zero_of(all.first[0]), zero_of(all.first[1]), zero_of(all.first[2]), zero_of(all.first[3]));
        if (HAS_AVERAGES) store_elements(push.saved_mean, channel, TYPE, zero);
        return;
    }
    if (OP == NORMALIZE) {
        store_floats(push.saved_mean, channel, mean);
        store_floats(push.saved_variance, channel, variance);
        // That of all inputs, of which this is a sample.
        if (IS_TRAINING) variance = variance * (float(push.count) / max(float(push.count) - 1.0f, 1.0f));
        if (IS_TRAINING && push.factor != 1.0f) {
            float rest = 1.0f - push.factor;
            mean = floats(push.mean, channel) * rest + mean * push.factor;
            variance = floats(push.variance, channel) * rest + variance * push.factor;
        }
    }
    store_floats(push.new_mean, channel, mean);
    store_floats(push.new_variance, channel, variance);
    if (OP == MOMENTS && HAS_SCALE) {
        mean = mean + elements(push.scale, channel);
        store_floats(push.y, channel, mean);
    }
    if (!HAS_AVERAGES) return;
    store_floats(push.saved_mean, channel, floats(push.mean, channel) * push.epsilon + mean * push.factor);
    store_floats(push.saved_variance, channel, floats(push.variance, channel) * push.epsilon + variance * push.factor);
}

void compute(uint image) {
    uint lane = gl_LocalInvocationID.x, across = push.across, down = 256 / across;
    uint of_tile = V * across, row = lane / across, part = gl_WorkGroupID.y, start = image * push.count;
    uint first = start + part * push.part + row, end = start + min((part + 1) * push.part, push.count);
    for (uint from = gl_WorkGroupID.x * of_tile; from < push.channels; from += gl_NumWorkGroups.x * of_tile) {
        uint channel = from + lane % across * V;
        bool is_one = channel < push.channels;
        Sums sums = none();
        if (!IS_LAST || push.parts > 0) {
            if (is_one) {
                if (IS_LAST) sums = sums_of_parts(channel, row, down);
                else sums = sums_of(image, channel, first, end, down);
            }
            sums = total(sums);
        }
        if (!is_one) continue;
        if (IS_LAST) {
            finish(channel, first, end, down, sums);
        } else if (row == 0) {
            uint at = 2 * (image * push.parts + part) * push.channels + channel;
            store_floats(push.sums, at, sums.first);
            store_floats(push.sums, at + push.channels, sums.second);
        }
    }
}

void main() {
    for (uint image = gl_WorkGroupID.z; image < push.images; image += gl_NumWorkGroups.z) compute(image);
}
