// Push constants of ops on up to two inputs, which are broadcast along RANK axes.
struct Axis { uint len, a, b; };
layout(push_constant, scalar) uniform Push {
    uint64_t a, b, out_;
    uint n;
    float number;
    Axis axes[8];
} push;

// The places of both inputs' elements for a result.
uvec2 places(uint i) {
    uvec2 at = uvec2(0, 0);
    for (int axis = int(RANK) - 1; axis >= 0; axis--) {
        uint along = axis == 0 ? i : i % push.axes[axis].len;
        i /= push.axes[axis].len;
        at += uvec2(along * push.axes[axis].a, along * push.axes[axis].b);
    }
    return at;
}
