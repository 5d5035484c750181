#version 460
// A step in time of a recurrent layer, or of its gradient. The ops, and where what is, are in `src/kernels/recurrent.rs`.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;

layout(push_constant, scalar) uniform Push {
    uint64_t at[12];
    // Of a batch so many rows, with so many units each. The step in time. From one row of `y` to the next are `y_step`
    // elements.
    uint batch, units, time, y_step;
} push;

float get(uint place, uint i) { return load(push.at[place], i, TYPE); }
void put(uint place, uint i, float x) { store(push.at[place], i, TYPE, x); }

// The sequence of this row has ended before this step; the lengths are 32-bit integers, or none.
bool has_ended(uint lengths, uint row) {
    return push.at[lengths] != 0 && push.time >= U32(push.at[lengths]).v[row];
}

const uint LSTM = 0, LSTM_GRADIENT = 1, GRU = 2, GRU_GRADIENT = 3, ADD = 4;

// 0 x * W, 1 h * R, 2 biases of W and R, 3 gates (written), 4 h, 5 next h, 6 y, 7 lengths, 8 c, 9 next c.
void forward(uint row, uint unit, uint i) {
    uint units = push.units, gates = row * 4 * units + unit, y = row * push.y_step + unit;
    if (has_ended(7, row)) {
        put(5, i, get(4, i));
        if (OP == LSTM) put(9, i, get(8, i));
        put(6, y, 0.0f);
        return;
    }
    float h;
    if (OP == LSTM) {
        float pre[4];
        for (uint gate = 0; gate < 4; gate++) {
            uint at = gates + gate * units, bias = gate * units + unit;
            pre[gate] = get(0, at) + get(1, at) + get(2, bias) + get(2, bias + 4 * units);
        }
        float inner = sigmoid(pre[0]), forget = sigmoid(pre[1]), cell = tanh_(pre[2]), outer = sigmoid(pre[3]);
        float c = forget * get(8, i) + inner * cell;
        h = outer * tanh_(c);
        put(9, i, c);
        put(3, gates, inner);
        put(3, gates + units, forget);
        put(3, gates + 2 * units, cell);
        put(3, gates + 3 * units, outer);
    } else {
        uint at = row * 3 * units + unit;
        float x[3], r[3];
        for (uint gate = 0; gate < 3; gate++) {
            uint bias = gate * units + unit;
            x[gate] = get(0, at + gate * units) + get(2, bias);
            r[gate] = get(1, at + gate * units) + get(2, bias + 3 * units);
        }
        float update = sigmoid(x[0] + r[0]), reset = sigmoid(x[1] + r[1]), cell = tanh_(x[2] + reset * r[2]);
        h = update * get(4, i) + (1.0f - update) * cell;
        put(3, gates, update);
        put(3, gates + units, reset);
        put(3, gates + 2 * units, cell);
        put(3, gates + 3 * units, r[2]);
    }
    put(5, i, h);
    put(6, y, h);
}

// Gradients of: 0 y, 1 next h by R, 2 next h past R or none, 3 h past R (written), 4 next c, 5 c (written), 6 x * W (written),
// 7 h * R (written). And: 8 lengths, 9 gates, 10 h (GRU) or c (LSTM), 11 next c.
void backward(uint row, uint unit, uint i) {
    uint units = push.units, gates = row * 4 * units + unit;
    float dh = get(1, i);
    if (push.at[2] != 0) dh += get(2, i);
    if (has_ended(8, row)) {
        put(3, i, dh);
        if (OP == LSTM_GRADIENT) {
            put(5, i, get(4, i));
            for (uint gate = 0; gate < 4; gate++) put(6, gates + gate * units, 0.0f);
        } else {
            for (uint gate = 0; gate < 3; gate++) {
                uint at = (row * 3 + gate) * units + unit;
                put(6, at, 0.0f);
                put(7, at, 0.0f);
            }
        }
        return;
    }
    dh += get(0, row * push.y_step + unit);
    float g0 = get(9, gates), g1 = get(9, gates + units), g2 = get(9, gates + 2 * units), g3 = get(9, gates + 3 * units);
    float old = get(10, i);
    if (OP == LSTM_GRADIENT) {
        float c = tanh_(get(11, i)), dc = get(4, i) + dh * g3 * (1.0f - c * c);
        put(3, i, 0.0f);
        put(5, i, dc * g1);
        put(6, gates, dc * g2 * g0 * (1.0f - g0));
        put(6, gates + units, dc * old * g1 * (1.0f - g1));
        put(6, gates + 2 * units, dc * g0 * (1.0f - g2 * g2));
        put(6, gates + 3 * units, dh * c * g3 * (1.0f - g3));
    } else {
        float cell = dh * (1.0f - g0) * (1.0f - g2 * g2);
        float update = dh * (old - g2) * g0 * (1.0f - g0), reset = cell * g3 * g1 * (1.0f - g1);
        uint at = row * 3 * units + unit;
        put(3, i, dh * g0);
        for (uint side = 6; side < 8; side++) {
            put(side, at, update);
            put(side, at + units, reset);
        }
        put(6, at + 2 * units, cell);
        put(7, at + 2 * units, cell * g1);
    }
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x, n = OP <= ADD ? push.batch * push.units : push.units;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step) {
        if (OP == ADD) {
            // 0 the sum, 1 a term, 2 another one or none.
            put(0, i, get(1, i) + (push.at[2] != 0 ? get(2, i) : 0.0f));
        } else if (OP > ADD) {
            // 0 the sums of the columns of 1.
            float sum = 0.0f;
            for (uint row = 0; row < push.batch; row++) sum += get(1, row * push.units + i);
            put(0, i, sum);
        } else if (OP == LSTM || OP == GRU) {
            forward(i / push.units, i % push.units, i);
        } else {
            backward(i / push.units, i % push.units, i);
        }
    }
}
