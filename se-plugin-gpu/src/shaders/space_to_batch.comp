#version 460
// Positions of images in blocks: those at the same place of all blocks are an image of their own, and back.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;
layout(constant_id = 1) const uint RANK = 1;
// Whether the result is the images, and not the blocks.
layout(constant_id = 2) const bool IS_BACK = false;

// Positions of a block, those before the image, of the image, and how many blocks there are.
struct Axis { uint block, before, space, blocks; };
layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    // Images are [batch, space of each axis, depth], blocks [place in a block, batch, blocks of each axis, depth].
    // `each` elements are at a place.
    uint n, batch, depth, each;
    Axis axes[4];
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint place = IS_BACK ? 0 : i / push.each, rest = (IS_BACK ? i : i % push.each) / push.depth;
        uint at = 0, stride = 1, places = 1;
        bool is_inside = true;
        for (int axis = int(RANK) - 1; axis >= 0; axis--) {
            uint block = push.axes[axis].block, space = push.axes[axis].space, blocks = push.axes[axis].blocks;
            if (IS_BACK) {
                uint position = rest % space + push.axes[axis].before;
                rest /= space;
                at += position / block * stride;
                stride *= blocks;
                place += position % block * places;
                places *= block;
            } else {
                // Before the image it is larger than all positions.
                uint position = rest % blocks * block + place % block - push.axes[axis].before;
                rest /= blocks;
                place /= block;
                is_inside = is_inside && position < space;
                at += position * stride;
                stride *= space;
            }
        }
        uint image = IS_BACK ? place * push.batch + rest : rest;
        uint64_t x = load_bits(push.in_, is_inside ? (image * stride + at) * push.depth + i % push.depth : 0, SIZE);
        store_bits(push.out_, i, SIZE, is_inside ? x : uint64_t(0));
    }
}
