// The gamma function of doubles: `math64.glsl` is before it.

const double PI = 3.141592653589793lf;

// log(gamma(2 + t)) for t from -1/2 to 1/2, by its Taylor series: near the zero at 2 it is as precise as t.
double log_gamma_of_two(double t) {
    precise double p = -2.7595228851242334e-10lf;
    p = p * t + 5.731367241678862e-10lf;
    p = p * t - 1.1921401405860912e-09lf;
    p = p * t + 2.4836745438024785e-09lf;
    p = p * t - 5.183475041970047e-09lf;
    p = p * t + 1.0838659214896955e-08lf;
    p = p * t - 2.2711094608943164e-08lf;
    p = p * t + 4.7698101693639804e-08lf;
    p = p * t - 1.0043224823968099e-07lf;
    p = p * t + 2.1207184805554665e-07lf;
    p = p * t - 4.492469198764566e-07lf;
    p = p * t + 9.55141213040742e-07lf;
    p = p * t - 2.039215753801366e-06lf;
    p = p * t + 4.374866789907488e-06lf;
    p = p * t - 9.439488275268397e-06lf;
    p = p * t + 2.050721277567069e-05lf;
    p = p * t - 4.492623673813314e-05lf;
    p = p * t + 9.945751278180853e-05lf;
    p = p * t - 0.00022315475845357939lf;
    p = p * t + 0.0005096695247430425lf;
    p = p * t - 0.001192753911703261lf;
    p = p * t + 0.0028905103307415234lf;
    p = p * t - 0.007385551028673986lf;
    p = p * t + 0.020580808427784546lf;
    p = p * t - 0.0673523010531981lf;
    p = p * t + 0.3224670334241132lf;
    p = p * t + 0.42278433509846713lf;
    return p * t;
}

// For numbers from -1/2 to 1/2.
double log_gamma_near_zero(double x) {
    double size = abs(x);
    return log_gamma_of_two(x) - log_(size < 1.0e-20lf ? size : size * (1.0lf + x));
}

// From 10 on by Stirling's series. Below, gamma(x) = (x - 1) gamma(x - 1) leads to the Taylor series.
double log_gamma_positive(double x) {
    if (x < 0.5lf) return log_gamma_near_zero(x);
    // Near the zero at 1, log(x) would lose the digits of x - 1.
    if (x <= 1.5lf) return log_gamma_of_two(x - 1.0lf) - log1p_(x - 1.0lf);
    if (x < 10.0lf) {
        double product = 1.0lf, at = x;
        for (int turn = 0; turn < 8 && at > 2.5lf; turn++) {
            at -= 1.0lf;
            product *= at;
        }
        return log_gamma_of_two(at - 2.0lf) + log_(product);
    }
    double r = 1.0lf / x, z = r * r;
    double p = 0.00641025641025641lf;
    p = p * z - 0.0019175269175269176lf;
    p = p * z + 0.0008417508417508417lf;
    p = p * z - 0.0005952380952380953lf;
    p = p * z + 0.0007936507936507937lf;
    p = p * z - 0.002777777777777778lf;
    p = p * z + 0.08333333333333333lf;
    double size = isinf(x) ? x : (x - 0.5lf) * log_(x) - x;
    return size + 0.9189385332046728lf + p * r;
}

// The difference to the nearest whole number, which is exact: x - floor(x) rounds to 1 for a small negative x.
double from_whole(double x) { return x - roundEven(x); }

// By Euler's reflection.
double log_gamma(double x) {
    if (isnan(x)) return x;
    if (isinf(x)) return INFINITY;
    if (x > 0.0lf) return log_gamma_positive(x);
    if (x > -0.5lf) return log_gamma_near_zero(x);
    double d = abs(from_whole(x));
    if (d == 0.0lf) return INFINITY;
    return log_(PI / sine(PI * d, 0)) - log_gamma_positive(1.0lf - x);
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
    double d = isinf(x) ? 0.0lf : from_whole(x);
    if (d == 0.0lf) return NAN;
    return digamma_positive(1.0lf - x) - PI * sine(PI * d, 1) / sine(PI * d, 0);
}
