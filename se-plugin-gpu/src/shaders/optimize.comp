#version 460
// A step of an optimizer, in place. The ops are in `src/kernels/optimize.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const uint NESTEROV = 0;

// The variable, what the optimizer keeps with it, the gradient, and scalars in the order of the op's inputs.
layout(push_constant, scalar) uniform Push {
    uint64_t variable, first, second, gradient, scalars[6];
    uint n;
} push;

SCALAR scalar(uint i) { return load(push.scalars[i], 0, TYPE); }

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        SCALAR x = load(push.variable, i, TYPE), g = load(push.gradient, i, TYPE), rate, m, v;
        switch (OP) {
            case 0: // Gradient descent.
                x -= scalar(0) * g;
                break;
            case 1: // Momentum as TensorFlow has it: a sum of gradients.
                rate = scalar(0);
                m = load(push.first, i, TYPE) * scalar(1) + g;
                store(push.first, i, TYPE, m);
                x -= NESTEROV != 0 ? g * rate + m * scalar(1) * rate : m * rate;
                break;
            case 2: // Momentum as Keras has it: a sum of steps.
                rate = scalar(0);
                m = load(push.first, i, TYPE) * scalar(1) - g * rate;
                store(push.first, i, TYPE, m);
                x += NESTEROV != 0 ? m * scalar(1) - g * rate : m;
                break;
            default: // Adam: powers of the decays, rate, decays, epsilon.
                rate = scalar(2) * sqrt(1.0f - scalar(1)) / (1.0f - scalar(0));
                m = load(push.first, i, TYPE);
                m += (g - m) * (1.0f - scalar(3));
                v = load(push.second, i, TYPE);
                v += (g * g - v) * (1.0f - scalar(4));
                store(push.first, i, TYPE, m);
                store(push.second, i, TYPE, v);
                if (NESTEROV != 0) m = m * scalar(3) + (1.0f - scalar(3)) * g;
                x -= m * rate / (sqrt(v) + scalar(5));
        }
        store(push.variable, i, TYPE, x);
    }
}
