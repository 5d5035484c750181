#version 460
// The elements of windows over images, side by side; zeros for those outside of the images.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bits.glsl"

const bool IS_DEEP = false;
#define TENSORS images_, out_
#include "window.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SIZE = 4;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uint element = i / push.channels, window = element / push.size.y / push.size.x;
        uint row = down(window / push.count.y % push.count.x, element / push.size.y % push.size.x);
        uint column = right(window % push.count.y, element % push.size.y);
        bool is_inside = row < push.rows && column < push.columns;
        uint at = is_inside ? image_at(window / push.count.y / push.count.x, row, column, i % push.channels) : 0;
        uint64_t x = load_bits(push.images_, at, SIZE);
        store_bits(push.out_, i, SIZE, is_inside ? x : uint64_t(0));
    }
}
