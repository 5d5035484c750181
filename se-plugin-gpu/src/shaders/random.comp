#version 460
// Random numbers: Philox 4x32-10 as TensorFlow's, four numbers for each counter.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint TYPE = 0;
layout(constant_id = 1) const uint DISTRIBUTION = 0;
// Whether key and counter are in memory.
layout(constant_id = 2) const bool ARE_TENSORS = false;

const uint UNIFORM = 0, NORMAL = 1, TRUNCATED_NORMAL = 2, INTEGERS = 3;
// Not numbers, but a key and a counter, from a seed of two integers.
const uint OF_SEED = 4;

layout(push_constant, scalar) uniform Push {
    // The key and the counter, or where they are. For `OF_SEED` the key is the seed, and the output the key.
    uint64_t key, counter, counter_high, out_;
    // Of integers the least, and how many there are; 0 means all.
    uint64_t least, range;
    // Counters, and the numbers of all of them.
    uint n, len;
} push;

// From 0 to below 1, of as many bits as the type has for it.
float uniform_(uint bits, uint type) {
    switch (type) {
        case T_F16: return unpackHalf2x16(0x3c00u | (bits & 0x3ffu)).x - 1.0f;
        case T_BF16: return from_bf16(0x3f80u | (bits & 0x7fu)) - 1.0f;
        default: return uintBitsToFloat(0x3f800000u | (bits & 0x7fffffu)) - 1.0f;
    }
}

// Two of a normal distribution, by Box and Muller.
vec2 normal(uvec2 bits) {
    float size = sqrt(-2.0f * log_(max(uniform_(bits.x, T_F32), 1.0e-7f)));
    float angle = 6.2831853071795864f * uniform_(bits.y, T_F32);
    return size * vec2(sine(angle, 0), sine(angle, 1));
}

vec4 normals(uvec4 bits) {
    vec2 first = normal(uvec2(bits.x, bits.y)), second = normal(uvec2(bits.z, bits.w));
    return vec4(first.x, first.y, second.x, second.y);
}

// Four of a normal distribution that are less than 2 from 0; the others are left out.
vec4 truncated_normal(Philox from, uint64_t skipped) {
    vec4 numbers = vec4(0);
    for (uint counter = 0, found = 0; counter < RESERVED && found < 4; counter++) {
        uvec4 bits = bits_of(from, skipped + counter);
        vec4 all = normals(bits);
        for (uint k = 0; k < 4 && found < 4; k++) if (abs(all[k]) < 2.0f) numbers[found++] = all[k];
    }
    return numbers;
}

const bool IS_WIDE = TYPE == T_I64 || TYPE == T_U64;

void store_integer(uint i, uint64_t bits) {
    if (i >= push.len) return;
    uint64_t x = push.range == 0 ? bits : push.least + bits % push.range;
    if (IS_WIDE) U64(push.out_).v[i] = int64_t(x);
    else U32(push.out_).v[i] = uint(x);
}

// What comes of a counter: four integers, or two of 64 bits.
void store_integers(uint i, uvec4 bits) {
    if (IS_WIDE) {
        store_integer(2 * i, packUint2x32(uvec2(bits.x, bits.y)));
        store_integer(2 * i + 1, packUint2x32(uvec2(bits.z, bits.w)));
    } else {
        store_integer(4 * i, bits.x);
        store_integer(4 * i + 1, bits.y);
        store_integer(4 * i + 2, bits.z);
        store_integer(4 * i + 3, bits.w);
    }
}

uint64_t seed(uint i) {
    return TYPE == T_I64 ? uint64_t(U64(push.key).v[i]) : uint64_t(int64_t(int(U32(push.key).v[i])));
}

// Mixes a seed as TensorFlow does: into the key, and the upper half of the counter.
void store_key_and_counter() {
    uvec4 mix = bits_of(philox_of(0x02461e293ec8f720ul, seed(0), seed(1), false), 0);
    U64(push.out_).v[0] = int64_t(packUint2x32(uvec2(mix.x, mix.y)));
    U64(push.counter).v[0] = 0;
    U64(push.counter).v[1] = int64_t(packUint2x32(uvec2(mix.z, mix.w)));
}

void main() {
    if (DISTRIBUTION == OF_SEED) {
        if (gl_GlobalInvocationID.x == 0) store_key_and_counter();
        return;
    }
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    Philox from = philox_of(push.key, push.counter, push.counter_high, ARE_TENSORS);
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        if (DISTRIBUTION == INTEGERS) {
            store_integers(i, bits_of(from, i));
            continue;
        }
        vec4 numbers;
        if (DISTRIBUTION == TRUNCATED_NORMAL) {
            numbers = truncated_normal(from, uint64_t(i) * RESERVED);
        } else {
            uvec4 bits = bits_of(from, i);
            numbers = DISTRIBUTION == NORMAL ? normals(bits)
                                             : vec4(uniform_(bits.x, TYPE), uniform_(bits.y, TYPE), uniform_(bits.z, TYPE), uniform_(bits.w, TYPE));
        }
        for (uint k = 0; k < min(4u, push.len - 4 * i); k++) store(push.out_, 4 * i + k, TYPE, numbers[k]);
    }
}
