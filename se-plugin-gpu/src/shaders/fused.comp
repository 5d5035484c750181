#version 460
// The steps of `steps.glsl` for each element of inputs that are broadcast.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "steps.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 2) const uint RANK = 1;

// The addresses of the inputs and of the output, two words each; the number of elements; for each axis its length, and how far
// each input steps along it.
layout(push_constant, scalar) uniform Push { uint words[32]; } push;

uint64_t address(uint i) { return packUint2x32(uvec2(push.words[2 * i], push.words[2 * i + 1])); }

void main() {
    const uint SIZES = 2 * INPUTS + 2, LAST = SIZES + 2 + (RANK - 1) * (INPUTS + 1), COUNT = IS_WIDE ? 4 : 1;
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.words[SIZES] / COUNT; i += stride) {
        uint at[6], rest = i * COUNT;
#define START(j) at[j] = 0;
        FOR_EACH_INPUT(START)
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            uint first = SIZES + 1 + uint(axis) * (INPUTS + 1);
            uint along = axis == 0 ? rest : rest % push.words[first];
            rest /= push.words[first];
#define STEP_ALONG(j) if (j < INPUTS) at[j] += along * push.words[first + 1 + j];
            FOR_EACH_INPUT(STEP_ALONG)
        }
        vec4 inputs[6];
#define LOAD(j) if (j < INPUTS) inputs[j] = elements(address(j), at[j], push.words[LAST + j], TYPES >> 4 * j & 0xfu);
        FOR_EACH_INPUT(LOAD)
        RUN_STEPS(results)
        store_elements(address(INPUTS), i, TYPES >> 24, results);
    }
}
