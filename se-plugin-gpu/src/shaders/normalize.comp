#version 460
// Batch normalization and its gradient: a workgroup computes a channel.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool IS_GRADIENT = false;
layout(constant_id = 1) const bool IS_TRAINING = false;
layout(constant_id = 2) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    // The gradient has `dy` in the place of `offset`, and `dx`, `dscale`, `doffset` in those of the first outputs.
    uint64_t x, scale, offset, mean, variance, y, new_mean, new_variance, saved_mean, saved_variance;
    // Elements of a channel.
    uint count, channels;
    float epsilon;
    // How much of the new is in the running mean and variance.
    float factor;
} push;

shared vec2 partial[256];

// The sums of all threads.
vec2 total(vec2 own) {
    uint lane = gl_LocalInvocationID.x;
    barrier();
    partial[lane] = own;
    barrier();
    for (uint other = 128; other > 0; other /= 2) {
        if (lane < other) partial[lane] += partial[lane + other];
        barrier();
    }
    return partial[0];
}

float element(uint64_t at, uint i, uint channel) { return load(at, i * push.channels + channel, TYPE); }

void main() {
    uint lane = gl_LocalInvocationID.x;
    for (uint channel = gl_WorkGroupID.x; channel < push.channels; channel += gl_NumWorkGroups.x) {
        float scale = F32(push.scale).v[channel], mean, variance;
        if (IS_TRAINING && !IS_GRADIENT) {
            vec2 sum = vec2(0.0f);
            for (uint i = lane; i < push.count; i += 256) sum.x += element(push.x, i, channel);
            mean = total(sum).x / push.count;
            sum = vec2(0.0f);
            for (uint i = lane; i < push.count; i += 256) {
                float d = element(push.x, i, channel) - mean;
                sum.x += d * d;
            }
            variance = total(sum).x / push.count;
        } else {
            mean = F32(push.mean).v[channel];
            variance = F32(push.variance).v[channel];
        }
        float reciprocal = 1.0f / sqrt(variance + push.epsilon);
        if (IS_GRADIENT) {
            vec2 sums = vec2(0.0f);
            for (uint i = lane; i < push.count; i += 256) {
                float dy = element(push.offset, i, channel);
                sums += vec2(dy, dy * (element(push.x, i, channel) - mean) * reciprocal);
            }
            sums = total(sums);
            for (uint i = lane; i < push.count; i += 256) {
                float normal = (element(push.x, i, channel) - mean) * reciprocal;
                float own = IS_TRAINING ? (sums.x + normal * sums.y) / push.count : 0.0f;
                store(push.y, i * push.channels + channel, TYPE,
                    scale * reciprocal * (element(push.offset, i, channel) - own));
            }
            if (lane == 0) {
                F32(push.new_mean).v[channel] = sums.y;
                F32(push.new_variance).v[channel] = sums.x;
            }
            continue;
        }
        float offset = F32(push.offset).v[channel];
        for (uint i = lane; i < push.count; i += 256)
            store(push.y, i * push.channels + channel, TYPE,
                (element(push.x, i, channel) - mean) * reciprocal * scale + offset);
        if (lane == 0) {
            F32(push.saved_mean).v[channel] = mean;
            F32(push.saved_variance).v[channel] = variance;
            if (IS_TRAINING) {
                // That of all inputs, of which this is a sample.
                variance *= float(push.count) / max(float(push.count) - 1.0f, 1.0f);
                if (push.factor != 1.0f) {
                    mean = mix(F32(push.mean).v[channel], mean, push.factor);
                    variance = mix(F32(push.variance).v[channel], variance, push.factor);
                }
            }
            F32(push.new_mean).v[channel] = mean;
            F32(push.new_variance).v[channel] = variance;
        }
    }
}
