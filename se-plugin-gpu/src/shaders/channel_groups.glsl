// Groups of `push.width` neighbouring ones of `push.channels`. Whoever includes it has included `neighbours.glsl`.

// The numbers of the groups of V neighbouring channels, of which each image has one for each of its groups.
vec4 of_groups(uint64_t at, uint image, uint channel) {
    uint first = image * (push.channels / push.width);
    float one = F32(at).v[first + channel / push.width];
    if (!IS_WIDE) return vec4(one);
    return vec4(one, F32(at).v[first + (channel + 1) / push.width], F32(at).v[first + (channel + 2) / push.width],
                F32(at).v[first + (channel + 3) / push.width]);
}
