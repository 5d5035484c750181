// Windows over images, which are [images, rows, columns, channels]; results are [images, count, results].

layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    // What the shader counts: results, groups of them, or elements of a sum.
    uint n;
    uint images, rows, columns, channels, results;
    // Down and right, as `Windows` in `se_plugin::toolkit::window`.
    uvec2 size, stride, dilation, before, count;
    // Of channels, which a filter has each for itself.
    uint groups;
} push;

// The place of an element of a window; outside of the images it is larger than they are.
uint down(uint window, uint element) { return window * push.stride.x + element * push.dilation.x - push.before.x; }
uint right(uint window, uint element) { return window * push.stride.y + element * push.dilation.y - push.before.y; }

// The windows, down and right, whose element (h, w) is in a place; beyond `count` if there are none.
uvec2 windows(uint row, uint column, uint h, uint w) {
    uvec2 reach = uvec2(row, column) + push.before, start = uvec2(h, w) * push.dilation, at = reach - start;
    bool is_one = all(lessThanEqual(start, reach)) && all(equal(at % push.stride, uvec2(0)));
    return is_one ? at / push.stride : push.count;
}

uint image_at(uint image, uint row, uint column, uint channel) {
    return ((image * push.rows + row) * push.columns + column) * push.channels + channel;
}
uint result_at(uint image, uint y, uint x, uint result) {
    return ((image * push.count.x + y) * push.count.y + x) * push.results + result;
}
