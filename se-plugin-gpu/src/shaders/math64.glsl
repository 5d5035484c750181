// Functions of doubles, which GLSL has none of, with the names of those in `math.glsl`. They are precise to their last digits; sums and
// products are precise too, so that all drivers return the same.

#define INFINITY uint64BitsToDouble(0x7ff0000000000000ul)
#define NAN uint64BitsToDouble(0x7ff8000000000000ul)

double with_sign_of(double size, double x) { return uint64BitsToDouble(doubleBitsToUint64(size) | (doubleBitsToUint64(x) & 0x8000000000000000ul)); }

// A sum of two numbers, of which the second is what rounding has taken from the first.
dvec2 sum_of(double a, double b) {
    precise double sum = a + b, part = sum - a;
    precise double rest = (a - (sum - part)) + (b - part);
    return dvec2(sum, rest);
}
// The first 26 binary digits: the product of two such numbers is exact.
double digits_of(double x) { return uint64BitsToDouble(doubleBitsToUint64(x) & 0xfffffffff8000000ul); }
dvec2 product_of(double a, double b) {
    double a_first = digits_of(a), b_first = digits_of(b);
    precise double all = a * b, a_second = a - a_first, b_second = b - b_first;
    precise double rest = ((a_first * b_first - all) + a_first * b_second + a_second * b_first) + a_second * b_second;
    return dvec2(all, rest);
}
dvec2 product_of_sums(dvec2 a, dvec2 b) {
    dvec2 both = product_of(a.x, b.x);
    precise double rest = both.y + (a.x * b.y + a.y * b.x);
    precise double all = both.x + rest;
    precise double lost = rest - (all - both.x);
    return dvec2(all, lost);
}

// What exp(r) - 1 - r is of r^2.
double exp_polynomial(double r) {
    precise double p = 1.6059043836821613e-10lf;
    p = p * r + 2.08767569878681e-09lf;
    p = p * r + 2.505210838544172e-08lf;
    p = p * r + 2.755731922398589e-07lf;
    p = p * r + 2.7557319223985893e-06lf;
    p = p * r + 2.48015873015873e-05lf;
    p = p * r + 0.0001984126984126984lf;
    p = p * r + 0.001388888888888889lf;
    p = p * r + 0.008333333333333333lf;
    p = p * r + 0.041666666666666664lf;
    p = p * r + 0.16666666666666666lf;
    p = p * r + 0.5lf;
    return p;
}
double exp_series(double r) {
    precise double series = exp_polynomial(r) * (r * r) + r;
    return series;
}

// Times 2^n, in two steps: 2^n may be too large or too small for a double.
double scaled(double x, double n) {
    int whole = int(n), half_ = whole / 2;
    precise double first = x * uint64BitsToDouble(uint64_t(half_ + 1023) << 52);
    return first * uint64BitsToDouble(uint64_t(whole - half_ + 1023) << 52);
}

// exp(x + rest).
double exp_of(double x, double rest) {
    if (isnan(x)) return x;
    if (x > 710.0lf) return INFINITY;
    if (x < -746.0lf) return 0.0lf;
    double n = roundEven(x * 1.4426950408889634lf);
    // The first product is exact, and so is the difference.
    precise double part = x - n * 0.6931471803691238lf, more = rest - n * 1.9082149292705877e-10lf;
    dvec2 r = sum_of(part, more);
    dvec2 whole = sum_of(1.0lf, r.x);
    precise double all = whole.x + (whole.y + (r.y + exp_polynomial(r.x) * (r.x * r.x)));
    return scaled(all, n);
}
double exp_(double x) { return exp_of(x, 0.0lf); }

// The series ends with a sum, which has lost the sign of a zero.
double expm1_(double x) { return x == 0.0lf ? x : abs(x) < 0.4lf ? exp_series(x) : exp_(x) - 1.0lf; }

// log(1 + r) + e log(2) + rest, for an r from sqrt(1/2) - 1 to sqrt(2) - 1, by the series of log((1 + s) / (1 - s)).
double log_series(double r, double e, double rest) {
    precise double s = r / (2.0lf + r), z = s * s, half_square = 0.5lf * r * r;
    precise double p = 0.08695652173913043lf;
    p = p * z + 0.09523809523809523lf;
    p = p * z + 0.10526315789473684lf;
    p = p * z + 0.11764705882352941lf;
    p = p * z + 0.13333333333333333lf;
    p = p * z + 0.15384615384615385lf;
    p = p * z + 0.18181818181818182lf;
    p = p * z + 0.2222222222222222lf;
    p = p * z + 0.2857142857142857lf;
    p = p * z + 0.4lf;
    p = p * z + 0.6666666666666666lf;
    precise double small = s * (half_square + p * z) + (e * 1.9082149292705877e-10lf + rest);
    precise double result = e * 0.6931471803691238lf - ((half_square - small) - r);
    return result;
}

// The exponent of a positive number, and the number divided by 2 to its power: from sqrt(1/2) to sqrt(2).
dvec2 exponent_of(double x) {
    uint64_t bits = doubleBitsToUint64(x);
    // A subnormal number is a whole number of 2^-1074. By the bits: a GPU may take it for 0.
    bool is_subnormal = bits < 0x10000000000000ul;
    if (is_subnormal) bits = doubleBitsToUint64(double(int64_t(bits)));
    int whole = int(uint(bits >> 32) - 0x3fe6a09eu) >> 20;
    bits -= uint64_t(int64_t(whole)) << 52;
    return dvec2(double(whole) - (is_subnormal ? 1074.0lf : 0.0lf), uint64BitsToDouble(bits));
}

// `rest` is small compared with `x`.
double log_of(double x, double rest) {
    uint64_t bits = doubleBitsToUint64(x);
    if (bits << 1 == 0ul) return -INFINITY;
    if (isnan(x) || bits >> 63 != 0ul) return NAN;
    if (isinf(x)) return x;
    dvec2 parts = exponent_of(x);
    return log_series(parts.y - 1.0lf, parts.x, rest / x);
}
double log_(double x) {
    uint64_t bits = doubleBitsToUint64(x);
    if (bits << 1 == 0ul) return -INFINITY;
    if (isnan(x) || bits >> 63 != 0ul) return NAN;
    if (isinf(x)) return x;
    dvec2 parts = exponent_of(x);
    return log_series(parts.y - 1.0lf, parts.x, 0.0lf);
}

double log1p_(double x) {
    if (isnan(x) || isinf(x) || x < -1.0lf) return x > 0.0lf ? x : NAN;
    // Subnormal numbers, and zeros with their signs.
    if (abs(x) < 1.0e-300lf) return x;
    if (x > -0.2928lf && x < 0.4142lf) return log_series(x, 0.0lf, 0.0lf);
    dvec2 sum = sum_of(1.0lf, x);
    return sum.x == 0.0lf ? -INFINITY : log_of(sum.x, sum.y);
}

double tanh_(double x) {
    double size = abs(x);
    if (size > 22.0lf) return sign(x);
    if (size < 1.0e-9lf) return x;
    double e = expm1_(2.0lf * size);
    return with_sign_of(size < 0.6lf ? e / (e + 2.0lf) : 1.0lf - 2.0lf / (e + 2.0lf), x);
}

double sigmoid(double x) {
    // Of what would be infinite, the reciprocal is a small number.
    if (x < -700.0lf) return exp_(x);
    return 1.0lf / (1.0lf + exp_(-x));
}
double softplus(double x) { return x > 0.0lf ? x + log1p_(exp_(-x)) : log1p_(exp_(x)); }

// What is left of 1 - erf(x), for x >= 0.49, by a polynomial for (1 + 2 x) exp(x^2) erfc(x).
double erfc_positive(double x) {
    if (x > 27.3lf) return 0.0lf;
    precise double q = (x - 2.0lf) / (x + 2.0lf);
    precise double p = -1.0595299949299244e-07lf;
    p = p * q + 1.9676113108071226e-07lf;
    p = p * q + 3.371307958287058e-07lf;
    p = p * q - 4.0173332427915546e-07lf;
    p = p * q - 9.573053994466357e-07lf;
    p = p * q - 5.579953838984875e-07lf;
    p = p * q + 1.5343993834040642e-06lf;
    p = p * q + 5.1537515524800315e-06lf;
    p = p * q + 3.713454028888021e-06lf;
    p = p * q - 1.347141826653837e-05lf;
    p = p * q - 3.6427174603403495e-05lf;
    p = p * q - 1.5140029439407434e-06lf;
    p = p * q + 0.00015104026422828204lf;
    p = p * q + 0.00020636772576478806lf;
    p = p * q - 0.00045434098925118505lf;
    p = p * q - 0.0014568139867915679lf;
    p = p * q + 0.0012713389787041651lf;
    p = p * q + 0.008722653877525244lf;
    p = p * q - 0.008034015082968264lf;
    p = p * q - 0.05422000099208046lf;
    p = p * q + 0.16405128003345248lf;
    p = p * q - 0.16603039761528895lf;
    p = p * q - 0.09276382658574607lf;
    p = p * q + 1.2769783815525286lf;
    dvec2 square = product_of(x, x);
    return exp_of(-square.x, -square.y) * (p / (1.0lf + 2.0lf * x));
}
double erf_(double x) {
    if (isnan(x) || x == 0.0lf) return x;
    if (abs(x) < 0.5lf) {
        precise double z = x * x;
        precise double p = 3.9554295164585257e-13lf;
        p = p * z - 5.9477940136376354e-12lf;
        p = p * z + 8.35070279514724e-11lf;
        p = p * z - 1.0892221037148573e-09lf;
        p = p * z + 1.3122532963802806e-08lf;
        p = p * z - 1.4503852223150468e-07lf;
        p = p * z + 1.4589169000933706e-06lf;
        p = p * z - 1.3227513227513228e-05lf;
        p = p * z + 0.00010683760683760684lf;
        p = p * z - 0.0007575757575757576lf;
        p = p * z + 0.004629629629629629lf;
        p = p * z - 0.023809523809523808lf;
        p = p * z + 0.1lf;
        p = p * z - 0.3333333333333333lf;
        return 1.1283791670955126lf * (x + x * (p * z));
    }
    return with_sign_of(1.0lf - erfc_positive(abs(x)), x);
}
double erfc_(double x) {
    if (isnan(x)) return x;
    if (abs(x) < 0.5lf) return 1.0lf - erf_(x);
    return x < 0.0lf ? 2.0lf - erfc_positive(-x) : erfc_positive(x);
}

// exp(y log(x)) for a positive x, where the logarithm, and its product with y, are sums of two doubles: what an error of the product
// is, the result has relative to itself.
double power(double x, double y) {
    dvec2 parts = exponent_of(x);
    double m = parts.y, e = parts.x;
    // log(m) is 2 (s + s^3 / 3 + s^5 / 5 + ...), with s = (m - 1) / (m + 1).
    precise double r = m - 1.0lf;
    dvec2 divisor = sum_of(m, 1.0lf);
    precise double first = r / divisor.x;
    dvec2 back = product_of(first, divisor.x);
    precise double second = ((r - back.x) - back.y - first * divisor.y) / divisor.x;
    dvec2 s = sum_of(first, second), square = product_of_sums(s, s), cube = product_of_sums(square, s);
    double z = square.x;
    precise double p = 0.08695652173913043lf;
    p = p * z + 0.09523809523809523lf;
    p = p * z + 0.10526315789473684lf;
    p = p * z + 0.11764705882352941lf;
    p = p * z + 0.13333333333333333lf;
    p = p * z + 0.15384615384615385lf;
    p = p * z + 0.18181818181818182lf;
    p = p * z + 0.2222222222222222lf;
    p = p * z + 0.2857142857142857lf;
    p = p * z + 0.4lf;
    dvec2 third = product_of_sums(cube, dvec2(0.6666666666666666lf, 3.700743415417188e-17lf));
    // e log(2) + log(m), of which the first product is exact.
    dvec2 large = sum_of(e * 0.6931471803691238lf, 2.0lf * s.x), logarithm = sum_of(large.x, third.x);
    precise double rest = large.y + logarithm.y + third.y + 2.0lf * s.y + p * (z * cube.x) + e * 1.9082149292705877e-10lf;
    logarithm = sum_of(logarithm.x, rest);
    dvec2 exponent = product_of(logarithm.x, y);
    if (exponent.x > 710.0lf) return INFINITY;
    if (exponent.x < -746.0lf) return 0.0lf;
    precise double more = exponent.y + logarithm.y * y;
    return exp_of(exponent.x, more);
}

double pow_(double x, double y) {
    if (y == 0.0lf || x == 1.0lf) return 1.0lf;
    if (isnan(x) || isnan(y)) return NAN;
    bool is_whole = floor(y) == y, is_odd = is_whole && abs(y) < 9007199254740992.0lf && (int64_t(y) & 1) == 1;
    // By the bits: a GPU may take subnormal numbers for 0.
    uint64_t bits = doubleBitsToUint64(x);
    bool is_zero = bits << 1 == 0ul, is_negative = bits >> 63 != 0ul && !is_zero;
    if (is_negative && !is_whole && !isinf(x)) return NAN;
    double size;
    if (isinf(y)) {
        size = abs(x) == 1.0lf ? 1.0lf : (abs(x) > 1.0lf) == (y > 0.0lf) ? INFINITY : 0.0lf;
    } else if (is_zero || isinf(x)) {
        size = is_zero == (y > 0.0lf) ? 0.0lf : INFINITY;
    } else if (abs(y) > 1.0e22lf) {
        // Its product with any logarithm but 0 is too large.
        size = abs(x) == 1.0lf ? 1.0lf : (abs(x) > 1.0lf) == (y > 0.0lf) ? INFINITY : 0.0lf;
    } else {
        size = power(uint64BitsToDouble(bits & 0x7ffffffffffffffful), y);
    }
    return is_odd ? with_sign_of(size, x) : size;
}

double sinh_(double x) {
    if (abs(x) < 1.0e-9lf) return x;
    double e = expm1_(abs(x) > 709.0lf ? 0.5lf * abs(x) : abs(x)), square = 0.5lf * e * e;
    // Beyond that the exponential is no double, but half of it is.
    return with_sign_of(abs(x) > 709.0lf ? square : 0.5lf * (e + e / (e + 1.0lf)), x);
}
double cosh_(double x) {
    double e = exp_(abs(x) > 709.0lf ? 0.5lf * abs(x) : abs(x));
    return abs(x) > 709.0lf ? 0.5lf * e * e : 0.5lf * (e + 1.0lf / e);
}

// log(x + sqrt(x^2 + 1)) and its like, by what the sum is more than 1.
double asinh_(double x) {
    double size = abs(x);
    if (size < 1.0e-9lf) return x;
    double value = size > 1.0e9lf ? log_(size) + 0.6931471805599453lf : log1p_(size + size * size / (1.0lf + sqrt(size * size + 1.0lf)));
    return with_sign_of(value, x);
}
double acosh_(double x) {
    if (x < 1.0lf) return NAN;
    double more = x - 1.0lf;
    return x > 1.0e9lf ? log_(x) + 0.6931471805599453lf : log1p_(more + sqrt(more * (more + 2.0lf)));
}
double atanh_(double x) {
    double size = abs(x);
    if (size > 1.0lf) return NAN;
    return with_sign_of(size == 1.0lf ? INFINITY : 0.5lf * log1p_(2.0lf * size / (1.0lf - size)), x);
}

// By polynomials of M. Giles, "Approximating the erfinv function" (2012), and two of Halley's steps, each of which has three times
// as many digits.
double erfinv_(double x) {
    double size = abs(x);
    if (isnan(x) || size > 1.0lf) return NAN;
    if (size == 1.0lf) return x * INFINITY;
    if (size < 1.0e-9lf) return x * 0.8862269254527579lf;
    double w = -log_((1.0lf - size) * (1.0lf + size)), p;
    if (w < 5.0lf) {
        w -= 2.5lf;
        p = 2.81022636e-8lf * w + 3.43273939e-7lf;
        p = p * w - 3.5233877e-6lf;
        p = p * w - 4.39150654e-6lf;
        p = p * w + 2.1858087e-4lf;
        p = p * w - 1.25372503e-3lf;
        p = p * w - 4.17768164e-3lf;
        p = p * w + 2.46640727e-1lf;
        p = p * w + 1.50140941lf;
    } else if (w > 16.0lf) {
        // Of the first term of the asymptotic series.
        w = -log_(1.0lf - size);
        p = sqrt(w - 0.5lf * log_(3.141592653589793lf * w)) / size;
    } else {
        w = sqrt(w) - 3.0lf;
        p = -2.00214257e-4lf * w + 1.00950558e-4lf;
        p = p * w + 1.34934322e-3lf;
        p = p * w - 3.67342844e-3lf;
        p = p * w + 5.73950773e-3lf;
        p = p * w - 7.6224613e-3lf;
        p = p * w + 9.43887047e-3lf;
        p = p * w + 1.00167406lf;
        p = p * w + 2.83297682lf;
    }
    double y = p * size;
    for (int step = 0; step < 2; step++) {
        // Of large numbers the difference is that of what is left of 1.
        double error = size > 0.5lf ? (1.0lf - size) - erfc_(y) : erf_(y) - size;
        double change = error * 0.8862269254527579lf * exp_(y * y);
        y -= change / (1.0lf + y * change);
    }
    return with_sign_of(y, x);
}

#include "angles64.glsl"
