#version 460
// The steps of `steps.glsl` for each element of several outputs, one for each workgroup's place along the second axis. An input has
// the shape of its output, or is one element.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "steps.glsl"

layout(local_size_x = 256) in;
// Three bits for each input, from the lowest: its place among those of its kind. From bit 18, a bit for each that all outputs
// share; from bit 24, a bit for each that is one element.
layout(constant_id = 2) const uint PLACES = 0;

// The addresses of the shared inputs; for each output, those of its own inputs and its own; the number of elements of each output.
layout(push_constant, scalar) uniform Push { uint words[32]; } push;

uint64_t address(uint i) { return packUint2x32(uvec2(push.words[2 * i], push.words[2 * i + 1])); }

// Not `bitCount`, which not all languages have.
const uint SHARED = (PLACES >> 18 & 1) + (PLACES >> 19 & 1) + (PLACES >> 20 & 1) + (PLACES >> 21 & 1) + (PLACES >> 22 & 1) + (PLACES >> 23 & 1);

void main() {
    const uint OWN = INPUTS - SHARED, COUNT = IS_WIDE ? 4 : 1;
    uint member = gl_WorkGroupID.y, first = SHARED + member * (OWN + 1);
    uint count = push.words[2 * (SHARED + gl_NumWorkGroups.y * (OWN + 1)) + member] / COUNT;
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += step) {
        vec4 inputs[6];
#define LOAD(j) \
        if (j < INPUTS) { \
            const bool IS_SHARED_##j = (PLACES >> 18 + j & 1) != 0, IS_ONE_##j = (PLACES >> 24 + j & 1) != 0; \
            uint64_t at = address((IS_SHARED_##j ? 0 : first) + (PLACES >> 3 * j & 7)); \
            inputs[j] = elements(at, IS_ONE_##j ? 0 : i * COUNT, IS_ONE_##j ? 0 : 1, TYPES >> 4 * j & 0xfu); \
        }
        FOR_EACH_INPUT(LOAD)
        RUN_STEPS(results)
        store_elements(address(first + OWN), i, TYPES >> 24, results);
    }
}
