#version 460
// Softmax of rows, and its cross-entropy with labels.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#ifdef DOUBLE
#include "math64.glsl"
#else
#include "math.glsl"
#endif

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
// The type of labels that are indices.
layout(constant_id = 2) const uint LABEL = 0;
// Whether a workgroup computes a row, or else each thread.
layout(constant_id = 3) const bool IS_WIDE = false;

// `LOSS` has a row of probabilities for each row as labels, `SPARSE` an index. They return the loss and its gradient.
const uint SOFTMAX = 0, LOG_SOFTMAX = 1, LOSS = 2, SPARSE = 3;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, labels, loss, out_;
    uint rows, classes;
    // From one row to the next, in elements: 0 if one row is for all.
    uint in_step, labels_step;
    // From one class to the next: 0 if there is one for all.
    uint in_class, labels_class;
} push;

shared SCALAR parts[256];

// The sum, or the largest, of what the threads have that compute a row.
SCALAR joined(SCALAR x, bool is_sum) {
    if (!IS_WIDE) return x;
    uint lane = gl_LocalInvocationID.x;
    parts[lane] = x;
    barrier();
    for (uint other = 128; other > 0; other /= 2) {
        if (lane < other) parts[lane] = is_sum ? parts[lane] + parts[lane + other] : max(parts[lane], parts[lane + other]);
        barrier();
    }
    SCALAR all = parts[0];
    barrier();
    return all;
}

void main() {
    uint lane = IS_WIDE ? gl_LocalInvocationID.x : 0, lanes = IS_WIDE ? gl_WorkGroupSize.x : 1;
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x / lanes;
    for (uint row = gl_GlobalInvocationID.x / lanes; row < push.rows; row += step) {
        uint first = row * push.in_step, out_first = row * push.classes;
        SCALAR most = -INFINITY;
        for (uint k = lane; k < push.classes; k += lanes) most = max(most, load(push.in_, first + k * push.in_class, TYPE));
        most = joined(most, false);
        SCALAR sum = 0.0f;
        for (uint k = lane; k < push.classes; k += lanes) sum += exp_(load(push.in_, first + k * push.in_class, TYPE) - most);
        sum = joined(sum, true);
        SCALAR log_sum = log_(sum), loss = 0.0f;
        int64_t label = -1;
        if (OP == SPARSE) label = LABEL == T_I32 ? int64_t(int(U32(push.labels).v[row])) : U64(push.labels).v[row];
        bool is_outside = OP == SPARSE && !is_within(label, push.classes);
        for (uint k = lane; k < push.classes; k += lanes) {
            SCALAR x = load(push.in_, first + k * push.in_class, TYPE) - most, p = exp_(x) / sum, result = p;
            if (OP == LOG_SOFTMAX) result = x - log_sum;
            if (OP == LOSS || OP == SPARSE) {
                SCALAR wanted = label == k ? 1.0f : 0.0f;
                if (OP == LOSS) wanted = load(push.labels, row * push.labels_step + k * push.labels_class, TYPE);
                if (wanted != 0.0f) loss += wanted * (log_sum - x);
                result = is_outside ? NAN : p - wanted;
            }
            store(push.out_, out_first + k, TYPE, result);
        }
        if (OP == LOSS || OP == SPARSE) {
            loss = joined(loss, true);
            if (lane == 0) store(push.loss, row, TYPE, is_outside ? NAN : loss);
        }
    }
}
