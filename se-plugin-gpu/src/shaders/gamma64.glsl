// The gamma function of doubles: `math64.glsl` is before it.

const double PI = 3.141592653589793lf;

// By Stirling's series from 10 on, and before that by products.
double log_gamma_positive(double x) {
    double product = 1.0lf, at = x;
    for (int turn = 0; turn < 10 && at < 10.0lf; turn++) {
        product *= at;
        at += 1.0lf;
    }
    double r = 1.0lf / at, z = r * r;
    double p = 0.00641025641025641lf;
    p = p * z - 0.0019175269175269176lf;
    p = p * z + 0.0008417508417508417lf;
    p = p * z - 0.0005952380952380953lf;
    p = p * z + 0.0007936507936507937lf;
    p = p * z - 0.002777777777777778lf;
    p = p * z + 0.08333333333333333lf;
    double size = isinf(at) ? at : (at - 0.5lf) * log_(at) - at;
    return size + 0.9189385332046728lf + p * r - log_(product);
}

// By Euler's reflection.
double log_gamma(double x) {
    if (isnan(x) || x > 0.0lf) return isnan(x) ? x : log_gamma_positive(x);
    double part = x - floor(x);
    if (isinf(x) || part == 0.0lf) return INFINITY;
    return log_(PI / sine(PI * part, 0)) - log_gamma_positive(1.0lf - x);
}

double digamma_positive(double x) {
    double sum = 0.0lf, at = x;
    for (int turn = 0; turn < 10 && at < 10.0lf; turn++) {
        sum += 1.0lf / at;
        at += 1.0lf;
    }
    double z = 1.0lf / (at * at);
    double p = 0.08333333333333333lf;
    p = p * z - 0.021092796092796094lf;
    p = p * z + 0.007575757575757576lf;
    p = p * z - 0.004166666666666667lf;
    p = p * z + 0.003968253968253968lf;
    p = p * z - 0.008333333333333333lf;
    p = p * z + 0.08333333333333333lf;
    return log_(at) - 0.5lf / at - p * z - sum;
}
double digamma(double x) {
    if (x > 0.0lf || isnan(x)) return isnan(x) ? x : digamma_positive(x);
    double part = x - floor(x);
    if (isinf(x) || part == 0.0lf) return NAN;
    return digamma_positive(1.0lf - x) - PI * sine(PI * part, 1) / sine(PI * part, 0);
}
