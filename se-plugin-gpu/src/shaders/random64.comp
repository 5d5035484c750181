#version 460
// Random doubles, as TensorFlow's: two numbers for each counter of Philox.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math64.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint DISTRIBUTION = 0;
// Whether key and counter are in memory.
layout(constant_id = 1) const bool ARE_TENSORS = false;

const uint UNIFORM = 0, NORMAL = 1;
// Counters of two numbers of which the largest are left out: as many bits for each number as for a float.
const uint RESERVED_FOR_TWO = RESERVED / 2;

layout(push_constant, scalar) uniform Push {
    // The key and the counter, or where they are.
    uint64_t key, counter, counter_high, out_;
    // Counters, and the numbers of all of them.
    uint n, len;
} push;

// From 0 to below 1.
double uniform_(uint high, uint low) { return uint64BitsToDouble(0x3ff0000000000000ul | double_bits(uvec2(high, low))) - 1.0lf; }

// Two of a normal distribution, by Box and Muller.
dvec2 normals(uvec4 bits) {
    double size = sqrt(-2.0lf * log_(max(uniform_(bits.x, bits.y), 1.0e-7lf)));
    double angle = 6.283185307179586lf * uniform_(bits.z, bits.w);
    return dvec2(sine(angle, 0) * size, sine(angle, 1) * size);
}

// Two of a normal distribution that are less than 2 from 0; the others are left out.
dvec2 truncated_normals(Philox from, uint64_t skipped) {
    dvec2 numbers = dvec2(0.0lf, 0.0lf);
    uint found = 0;
    for (uint counter = 0; counter < RESERVED_FOR_TWO && found < 2; counter++) {
        dvec2 both = normals(bits_of(from, skipped + counter));
        if (abs(both.x) < 2.0lf) {
            if (found == 0) numbers.x = both.x;
            else numbers.y = both.x;
            found++;
        }
        if (abs(both.y) < 2.0lf && found < 2) {
            if (found == 0) numbers.x = both.y;
            else numbers.y = both.y;
            found++;
        }
    }
    return numbers;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    Philox from = philox_of(push.key, push.counter, push.counter_high, ARE_TENSORS);
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        dvec2 numbers;
        if (DISTRIBUTION == UNIFORM) {
            uvec4 bits = bits_of(from, i);
            numbers = dvec2(uniform_(bits.x, bits.y), uniform_(bits.z, bits.w));
        } else {
            numbers = DISTRIBUTION == NORMAL ? normals(bits_of(from, i)) : truncated_normals(from, uint64_t(i) * RESERVED_FOR_TWO);
        }
        F64(push.out_).v[2 * i] = numbers.x;
        if (2 * i + 1 < push.len) F64(push.out_).v[2 * i + 1] = numbers.y;
    }
}
