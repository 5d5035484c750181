#version 460
// Softmax of rows, and its cross-entropy with labels: a thread computes a row.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
// The type of labels that are indices.
layout(constant_id = 2) const uint LABEL = 0;

// `LOSS` has a row of probabilities for each row as labels, `SPARSE` an index. They return the loss and its gradient.
const uint SOFTMAX = 0, LOG_SOFTMAX = 1, LOSS = 2, SPARSE = 3;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, labels, loss, out_;
    uint rows, classes;
    // From one row to the next, in elements: 0 if one row is for all.
    uint in_step, labels_step;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint row = gl_GlobalInvocationID.x; row < push.rows; row += step) {
        uint first = row * push.in_step, out_first = row * push.classes;
        float most = -INFINITY;
        for (uint k = 0; k < push.classes; k++) most = max(most, load(push.in_, first + k, TYPE));
        float sum = 0.0f;
        for (uint k = 0; k < push.classes; k++) sum += exp_(load(push.in_, first + k, TYPE) - most);
        float log_sum = log_(sum), loss = 0.0f;
        int64_t label = -1;
        if (OP == SPARSE) label = LABEL == T_I32 ? int64_t(int(U32(push.labels).v[row])) : U64(push.labels).v[row];
        bool is_outside = OP == SPARSE && (label < 0 || label >= push.classes);
        for (uint k = 0; k < push.classes; k++) {
            float x = load(push.in_, first + k, TYPE) - most, p = exp_(x) / sum, result = p;
            if (OP == LOG_SOFTMAX) result = x - log_sum;
            if (OP == LOSS || OP == SPARSE) {
                float wanted = label == k ? 1.0f : 0.0f;
                if (OP == LOSS) wanted = load(push.labels, row * push.labels_step + k, TYPE);
                if (wanted != 0.0f) loss += wanted * (log_sum - x);
                result = is_outside ? NAN : p - wanted;
            }
            store(push.out_, out_first + k, TYPE, result);
        }
        if (OP == LOSS || OP == SPARSE) store(push.loss, row, TYPE, is_outside ? NAN : loss);
    }
}
