#version 460
// Incomplete gamma functions and their gradients, of up to two inputs, which are broadcast. All types are computed with doubles: sums
// lose digits.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math64.glsl"
#include "gamma64.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint TYPE = 0;
layout(constant_id = 2) const uint RANK = 1;
#include "broadcast.glsl"

// The ops of `src/kernels/igamma.rs`. The gradient is that by the first input; that of a sample is how it changes with its `alpha`.
const uint LOWER = 0, UPPER = 1, GRADIENT = 2, SAMPLE_GRADIENT = 3, LOG_GAMMA = 4, DIGAMMA = 5;

const uint MOST_TERMS = 2000;
const double PRECISION = 1.0e-16lf;

// x^a exp(-x) / gamma(b).
double term(double a, double x, double b) { return exp_(a * log_(x) - x - log_gamma_positive(b)); }

// A value, and its derivative by `a`.
struct Value { double value, by_a; };

// The series of the lower function, without its factor x^a exp(-x) / gamma(a + 1).
Value series(double a, double x) {
    Value sum;
    sum.value = 1.0lf;
    sum.by_a = 0.0lf;
    double r = a, c = 1.0lf, c_by_a = 0.0lf;
    for (uint i = 0; i < MOST_TERMS; i++) {
        r += 1.0lf;
        double factor = x / r;
        c_by_a = factor * c_by_a - factor / r * c;
        sum.by_a += c_by_a;
        c *= factor;
        sum.value += c;
        if (c <= PRECISION * sum.value && abs(c_by_a) <= PRECISION * abs(sum.by_a)) break;
    }
    return sum;
}

// The continued fraction of the upper function, without its factor x^a exp(-x) / gamma(a): as S. Moshier's Cephes computes it.
Value fraction(double a, double x) {
    double y = 1.0lf - a, z = x + y + 1.0lf, c = 0.0lf;
    double p_before = 1.0lf, q_before = x, p = x + 1.0lf, q = z * x;
    double dp_before = 0.0lf, dq_before = 0.0lf, dp = 0.0lf, dq = -x;
    Value all;
    all.value = p / q;
    all.by_a = (dp - all.value * dq) / q;
    for (uint i = 0; i < MOST_TERMS; i++) {
        c += 1.0lf;
        y += 1.0lf;
        z += 2.0lf;
        double product = y * c, p_next = p * z - p_before * product, q_next = q * z - q_before * product;
        double dp_next = dp * z - p - dp_before * product + p_before * c, dq_next = dq * z - q - dq_before * product + q_before * c;
        p_before = p;
        q_before = q;
        dp_before = dp;
        dq_before = dq;
        p = p_next;
        q = q_next;
        dp = dp_next;
        dq = dq_next;
        double value = all.value, by_a = all.by_a;
        if (q != 0.0lf) {
            all.value = p / q;
            all.by_a = (dp - all.value * dq) / q;
            if (abs(all.value - value) <= PRECISION * abs(all.value) && abs(all.by_a - by_a) <= PRECISION * abs(all.by_a)) break;
        }
        if (abs(p) > 1.0e200lf) {
            double small = 1.0e-200lf;
            p_before *= small;
            q_before *= small;
            p *= small;
            q *= small;
            dp_before *= small;
            dq_before *= small;
            dp *= small;
            dq *= small;
        }
    }
    return all;
}

double result(double a, double x) {
    if (OP == LOG_GAMMA) return log_gamma(a);
    if (OP == DIGAMMA) return digamma(a);
    if (isnan(a) || isnan(x) || x < 0.0lf || a <= 0.0lf) return x == 0.0lf && OP != UPPER ? 0.0lf : NAN;
    if (x == 0.0lf) return OP == UPPER ? 1.0lf : 0.0lf;
    if (isinf(x) || isinf(a)) {
        bool is_upper = isinf(a);
        return OP == LOWER ? (is_upper ? 0.0lf : 1.0lf) : OP == UPPER ? (is_upper ? 1.0lf : 0.0lf) : NAN;
    }
    bool is_fraction = x > 1.0lf && x > a;
    Value all;
    if (is_fraction) all = fraction(a, x);
    else all = series(a, x);
    double b = is_fraction ? a : a + 1.0lf, by_a = all.by_a + all.value * (log_(x) - digamma_positive(b));
    if (OP == SAMPLE_GRADIENT) return is_fraction ? by_a * x : -by_a * x / a;
    double factor = term(a, x, b);
    if (OP == GRADIENT) return (is_fraction ? -by_a : by_a) * factor;
    return (OP == LOWER) == is_fraction ? 1.0lf - all.value * factor : all.value * factor;
}

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        uvec2 at = places(i);
        store(push.out_, i, TYPE, result(load(push.a, at.x, TYPE), load(push.b, at.y, TYPE)));
    }
}
