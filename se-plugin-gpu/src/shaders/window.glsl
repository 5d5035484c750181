// Windows over images, which are [images, rows, columns, channels]; results are [images, count, results]. A volume is `deep`
// images, one behind the other, and its results are `deep_count` layers. Whoever includes it has IS_DEEP, whether there are
// volumes, and the TENSORS.

layout(push_constant, scalar) uniform Push {
    uint64_t TENSORS;
    // What the shader counts: results, groups of them, or elements of a sum.
    uint n;
    uint images, rows, columns, channels, results;
    // Down and right, as `Windows` in `se_plugin::toolkit::window`.
    uvec2 size, stride, dilation, before, count;
    // Of channels, which a filter has each for itself.
    uint groups;
    // As above, through volumes. Without them all are 1, except `deep_before`, which is 0.
    uint deep, deep_size, deep_stride, deep_dilation, deep_before, deep_count;
} push;

uint deep_size() { return IS_DEEP ? push.deep_size : 1; }
uint images() { return IS_DEEP ? push.images * push.deep : push.images; }
uint layers() { return IS_DEEP ? push.images * push.deep_count : push.images; }

// The place of an element of a window; outside of the images it is larger than they are.
uint down(uint window, uint element) { return window * push.stride.x + element * push.dilation.x - push.before.x; }
uint right(uint window, uint element) { return window * push.stride.y + element * push.dilation.y - push.before.y; }

// The windows, down and right, whose element (h, w) is in a place; beyond `count` if there are none.
uvec2 windows(uint row, uint column, uint h, uint w) {
    uvec2 reach = uvec2(row, column) + push.before, start = uvec2(h, w) * push.dilation, at = reach - start;
    bool is_one = all(lessThanEqual(start, reach)) && all(equal(at % push.stride, uvec2(0)));
    return is_one ? at / push.stride : push.count;
}

// The image under an element of the windows of a layer, and the layer of the windows whose element is in an image, or NONE.
uint image_under(uint layer, uint d) {
    if (!IS_DEEP) return layer;
    uint place = layer % push.deep_count * push.deep_stride + d * push.deep_dilation - push.deep_before;
    return place < push.deep ? layer / push.deep_count * push.deep + place : NONE;
}
uint layer_over(uint image, uint d) {
    if (!IS_DEEP) return image;
    uint reach = image % push.deep + push.deep_before, start = d * push.deep_dilation, at = reach - start;
    bool is_one = start <= reach && at % push.deep_stride == 0 && at / push.deep_stride < push.deep_count;
    return is_one ? image / push.deep * push.deep_count + at / push.deep_stride : NONE;
}

uint image_at(uint image, uint row, uint column, uint channel) {
    return ((image * push.rows + row) * push.columns + column) * push.channels + channel;
}
uint result_at(uint layer, uint y, uint x, uint result) {
    return ((layer * push.count.x + y) * push.count.y + x) * push.results + result;
}
