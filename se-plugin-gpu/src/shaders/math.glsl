// Functions of floats. Those of GLSL may be off by more than a float's last digits, differently with each driver.

#define INFINITY uintBitsToFloat(0x7f800000u)
#define NAN uintBitsToFloat(0x7fc00000u)

float with_sign_of(float size, float x) { return uintBitsToFloat(floatBitsToUint(size) | (floatBitsToUint(x) & 0x80000000u)); }

// What exp(r) - 1 - r is of r^2.
float exp_polynomial(float r) {
    float p = 1.9875691500e-4f;
    p = fma(p, r, 1.3981999507e-3f);
    p = fma(p, r, 8.3334519073e-3f);
    p = fma(p, r, 4.1665795894e-2f);
    p = fma(p, r, 1.6666665459e-1f);
    return fma(p, r, 5.0000001201e-1f);
}
float exp_series(float r) { return fma(exp_polynomial(r), r * r, r); }

// Times 2^n, in two steps: 2^n may be too large or too small for a float.
float scaled(float x, float n) {
    int whole = int(n), half_ = whole / 2;
    return x * uintBitsToFloat(uint(half_ + 127) << 23) * uintBitsToFloat(uint(whole - half_ + 127) << 23);
}

float exp_(float x) {
    if (isnan(x)) return x;
    if (x > 88.8f) return INFINITY;
    if (x < -104.0f) return 0.0f;
    float n = roundEven(x * 1.44269504f);
    // The first product is exact. Mesa would make one product of both, which has fewer digits.
    precise float r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    return scaled(exp_series(r) + 1.0f, n);
}

// The series ends with a sum, which has lost the sign of a zero.
float expm1_(float x) { return x == 0.0f ? x : abs(x) < 0.34f ? exp_series(x) : exp_(x) - 1.0f; }

float log_(float x) {
    if (x < 0.0f || isnan(x)) return NAN;
    if (x == 0.0f) return -INFINITY;
    if (isinf(x)) return x;
    float e = 0.0f;
    if (x < 1.17549435e-38f) { x *= 8388608.0f; e = -23.0f; }
    uint bits = floatBitsToUint(x);
    float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f000000u);
    e += float(int(bits >> 23) - 126);
    if (m < 0.70710678f) { e -= 1.0f; m = m + m; }
    float r = m - 1.0f, z = r * r, p = 7.0376836292e-2f;
    p = fma(p, r, -1.1514610310e-1f);
    p = fma(p, r, 1.1676998740e-1f);
    p = fma(p, r, -1.2420140846e-1f);
    p = fma(p, r, 1.4249322787e-1f);
    p = fma(p, r, -1.6668057665e-1f);
    p = fma(p, r, 2.0000714765e-1f);
    p = fma(p, r, -2.4999993993e-1f);
    p = fma(p, r, 3.3333331174e-1f);
    float y = p * r * z + e * -2.12194440e-4f - 0.5f * z;
    return r + y + e * 0.693359375f;
}

float log1p_(float x) {
    // One more makes no difference, and GPUs may divide by large numbers as they like.
    if (x > 3.4e7f) return log_(x);
    precise float u = 1.0f + x;
    precise float back = u - 1.0f;
    return back == 0.0f ? x : log_(u) * (x / back);
}

float tanh_(float x) {
    if (abs(x) > 10.0f) return sign(x);
    float e = expm1_(2.0f * abs(x));
    return with_sign_of(e / (e + 2.0f), x);
}

float sigmoid(float x) { return 1.0f / (1.0f + exp_(-x)); }
float softplus(float x) { return x > 20.0f ? x : log1p_(exp_(x)); }

// Bits of 1 / (2 pi), 32 at a time.
uint turn_bits(uint at) {
    switch (at) {
        case 0: return 0x28be60dbu;
        case 1: return 0x9391054au;
        case 2: return 0x7f09d5f4u;
        case 3: return 0x7d4d3770u;
        case 4: return 0x36d8a566u;
        case 5: return 0x4f10e410u;
        default: return 0x7f9458eau;
    }
}

// What is left of a large number of radians without whole quarters of a turn, and how many of four: by M. Payne and R. Hanek,
// "Radian reduction for trigonometric functions" (1983).
vec2 without_quarters(float x) {
    uint bits = floatBitsToUint(x), digits = (bits << 8) | 0x80000000u;
    // The number is `digits` times 2 to the power of this, without 32.
    uint exponent = ((bits >> 23) & 0xffu) - 126u, at = exponent / 32u, shift = exponent % 32u;
    uint high = at > 0u ? turn_bits(at - 1u) : 0u, middle = turn_bits(at), low = turn_bits(at + 1u), rest = turn_bits(at + 2u);
    if (shift > 0u) {
        high = (high << shift) | (middle >> (32u - shift));
        middle = (middle << shift) | (low >> (32u - shift));
        low = (low << shift) | (rest >> (32u - shift));
    }
    // Turns: two bits of quarters, and what is behind the point.
    uint64_t turns = uint64_t(digits) * uint64_t(middle) + (uint64_t(digits) * uint64_t(low) >> 32);
    turns += uint64_t(digits * high) << 32;
    int64_t part = int64_t(turns << 2) >> 2;
    // More than a half is less than nothing of the next quarter.
    float quarters = float(uint(turns >> 62)) + (part < 0 ? 1.0f : 0.0f);
    // pi / 2 in 2^62 parts.
    float r = float(part) * 3.40612158e-19f;
    return x < 0.0f ? vec2(-r, -quarters) : vec2(r, quarters);
}

// Sine, or cosine with a quarter of a turn more.
float sine(float x, int quarter) {
    if (isinf(x)) return NAN;
    // Which has a sign.
    if (x == 0.0f && quarter == 0) return x;
    float n = roundEven(x * 0.636619772f);
    float r = fma(n, -7.54978995489e-8f, fma(n, -4.837512969970703125e-4f, fma(n, -1.5703125f, x)));
    if (abs(x) > 8192.0f) {
        vec2 rest = without_quarters(x);
        r = rest.x;
        n = rest.y;
    }
    float z = r * r;
    int at = int(n) + quarter;
    float s = fma(fma(fma(fma(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f), z, 0.0f), r, r);
    float c = fma(fma(fma(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f), z * z, 1.0f - 0.5f * z);
    float value = (at & 1) == 0 ? s : c;
    return (at & 2) == 0 ? value : -value;
}

// What is left of 1 - erf(x), for x >= 0.45, by a polynomial for (1 + 1.5 x) exp(x^2) erfc(x), which is within 2^-26 of it.
float erfc_positive(float x) {
    if (x > 10.1f) return 0.0f;
    float q = (x - 2.0f) / (x + 2.0f), p = -9.37915145e-4f;
    p = fma(p, q, 4.86155161e-4f);
    p = fma(p, q, 6.28441514e-3f);
    p = fma(p, q, -4.21260132e-3f);
    p = fma(p, q, -3.97256849e-2f);
    p = fma(p, q, 0.103286814f);
    p = fma(p, q, -6.41085464e-2f);
    p = fma(p, q, -0.176369121f);
    p = fma(p, q, 1.02158271f);
    p /= fma(1.5f, x, 1.0f);
    // The square in two parts, of which the first is exact: its error would be one of the result, not of its last digits.
    float high = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
    precise float square = high * high, more = (x - high) * (x + high);
    float e = exp_(-square);
    return p * fma(e, exp_series(-more), e);
}
float erf_(float x) {
    if (abs(x) < 0.5f) {
        float z = x * x;
        float p = fma(fma(fma(fma(-7.5757576e-4f, z, 4.6296296e-3f), z, -2.3809524e-2f), z, 0.1f), z, -0.33333333f);
        return 1.12837917f * x * fma(p, z, 1.0f);
    }
    float value = 1.0f - erfc_positive(abs(x));
    return x < 0.0f ? -value : value;
}
float erfc_(float x) {
    if (abs(x) < 0.5f) return 1.0f - erf_(x);
    return x < 0.0f ? 2.0f - erfc_positive(-x) : erfc_positive(x);
}

// The first twelve binary digits: the product of two such numbers is exact.
float digits_of(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// exp(y log(x)) for a positive x, where the logarithm, and its product with y, are sums of two floats: what an error of the product is,
// the result has relative to itself.
float power(float x, float y) {
    // x is m 2^e, with an m from sqrt(1/2) to sqrt(2). A subnormal number is a whole number of 2^-149.
    uint bits = floatBitsToUint(x);
    bool is_subnormal = bits < 0x800000u;
    if (is_subnormal) bits = floatBitsToUint(float(bits));
    int whole = int(bits - 0x3f3504f3u) >> 23;
    float m = uintBitsToFloat(bits - (uint(whole) << 23)), e = float(whole) - (is_subnormal ? 149.0f : 0.0f);
    // log(m) is 2 (s + s^3 / 3 + s^5 / 5 + ...), with s = (m - 1) / (m + 1): `first` and `second`.
    precise float r = m - 1.0f, sum = m + 1.0f, sum_first = digits_of(sum);
    precise float sum_second = (sum - sum_first) + (m - (sum - 1.0f));
    float first = digits_of(r / sum);
    precise float second = ((r - first * sum_first) - first * sum_second) / sum, s = first + second;
    float z = s * s, p = fma(fma(fma(fma(0.184f, z, 0.22222222f), z, 0.28571429f), z, 0.4f), z, 0.66666667f);
    // e log(2) + log(m), of which the first product is exact.
    precise float large = e * 0.693359375f, high = large + 2.0f * first;
    precise float low = (2.0f * first - (high - large)) + (2.0f * second + p * (z * s) - e * 2.12194440e-4f);
    precise float logarithm = high + low, logarithm_rest = low - (logarithm - high);
    precise float exponent = y * logarithm;
    if (exponent > 89.0f) return INFINITY;
    if (exponent < -104.0f) return 0.0f;
    float y_first = digits_of(y), logarithm_first = digits_of(logarithm);
    precise float y_second = y - y_first, logarithm_second = logarithm - logarithm_first;
    precise float exponent_rest = (y_first * logarithm_first - exponent) + y_first * logarithm_second + y_second * logarithm_first;
    exponent_rest += y_second * logarithm_second + y * logarithm_rest;
    // As `exp_`, with a sum of which no digit is lost.
    float n = roundEven(exponent * 1.44269504f);
    precise float part = exponent - n * 0.693359375f, more = n * 2.12194440e-4f + exponent_rest, t = part + more;
    precise float t_rest = more - (t - part), one = 1.0f + t;
    precise float size = one + ((t - (one - 1.0f)) + t_rest * one + exp_polynomial(t) * (t * t));
    return scaled(size, n);
}

float pow_(float x, float y) {
    if (y == 0.0f || x == 1.0f) return 1.0f;
    if (isnan(x) || isnan(y)) return NAN;
    bool is_whole = floor(y) == y, is_odd = is_whole && abs(y) < 16777216.0f && (int(y) & 1) == 1;
    // By the bits: a GPU may take subnormal numbers for 0.
    uint bits = floatBitsToUint(x);
    bool is_zero = bits << 1 == 0u, is_negative = bits >> 31 != 0u && !is_zero;
    if (is_negative && !is_whole && !isinf(x)) return NAN;
    float size;
    if (isinf(y)) {
        size = abs(x) == 1.0f ? 1.0f : (abs(x) > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    } else if (is_zero || isinf(x)) {
        size = is_zero == (y > 0.0f) ? 0.0f : INFINITY;
    } else {
        size = power(abs(x), y);
    }
    return is_odd ? with_sign_of(size, x) : size;
}

float sinh_(float x) {
    float e = expm1_(abs(x) > 88.0f ? 0.5f * abs(x) : abs(x)), square = 0.5f * e * e;
    // Beyond that the exponential is no float, but half of it is.
    return with_sign_of(abs(x) > 88.0f ? square : 0.5f * (e + e / (e + 1.0f)), x);
}
float cosh_(float x) {
    float e = exp_(abs(x) > 88.0f ? 0.5f * abs(x) : abs(x));
    return abs(x) > 88.0f ? 0.5f * e * e : 0.5f * (e + 1.0f / e);
}

// log(x + sqrt(x^2 + 1)) and its like, by what the sum is more than 1.
float asinh_(float x) {
    float size = abs(x);
    float value = size > 1.0e9f ? log_(size) + 0.693147181f : log1p_(size + size * size / (1.0f + sqrt(size * size + 1.0f)));
    return with_sign_of(value, x);
}
float acosh_(float x) {
    if (x < 1.0f) return NAN;
    float more = x - 1.0f;
    return x > 1.0e9f ? log_(x) + 0.693147181f : log1p_(more + sqrt(more * (more + 2.0f)));
}
float atanh_(float x) {
    float size = abs(x);
    if (size > 1.0f) return NAN;
    return with_sign_of(size == 1.0f ? INFINITY : 0.5f * log1p_(2.0f * size / (1.0f - size)), x);
}

// Of numbers from 0 to 1.
float atan_small(float x) {
    bool is_large = x > 0.414213562f;
    float r = is_large ? (x - 1.0f) / (x + 1.0f) : x, z = r * r;
    float p = fma(fma(fma(8.05374449538e-2f, z, -1.38776856032e-1f), z, 1.99777106478e-1f), z, -3.33329491539e-1f);
    return (is_large ? 0.785398163f : 0.0f) + fma(p * z, r, r);
}
// The angle of a point.
float atan2_(float y, float x) {
    if (isnan(x) || isnan(y)) return NAN;
    float across = abs(x), up = abs(y);
    bool is_steep = up > across;
    float ratio = across == up ? (across == 0.0f ? 0.0f : 1.0f) : is_steep ? across / up : up / across;
    float angle = atan_small(ratio);
    if (is_steep) angle = 1.57079633f - angle;
    // Zeros have signs too.
    if ((floatBitsToUint(x) & 0x80000000u) != 0u) angle = 3.14159265f - angle;
    return with_sign_of(angle, y);
}
float asin_small(float x) {
    float z = x * x;
    float p = fma(fma(fma(fma(4.2163199048e-2f, z, 2.4181311049e-2f), z, 4.5470025998e-2f), z, 7.4953002686e-2f), z, 1.6666752422e-1f);
    return fma(p * z, x, x);
}
float asin_(float x) {
    float size = abs(x);
    if (size > 1.0f) return NAN;
    return with_sign_of(size > 0.5f ? 1.57079633f - 2.0f * asin_small(sqrt(0.5f * (1.0f - size))) : asin_small(size), x);
}
float acos_(float x) {
    if (abs(x) > 1.0f) return NAN;
    if (x > 0.5f) return 2.0f * asin_small(sqrt(0.5f * (1.0f - x)));
    return x < -0.5f ? 3.14159265f - 2.0f * asin_small(sqrt(0.5f * (1.0f + x))) : 1.57079633f - asin_small(x);
}

// By polynomials of M. Giles, "Approximating the erfinv function" (2012).
float erfinv_(float x) {
    if (isnan(x) || abs(x) > 1.0f) return NAN;
    if (abs(x) == 1.0f) return x * INFINITY;
    float w = -log_((1.0f - x) * (1.0f + x)), p;
    if (w < 5.0f) {
        w -= 2.5f;
        p = fma(2.81022636e-8f, w, 3.43273939e-7f);
        p = fma(p, w, -3.5233877e-6f);
        p = fma(p, w, -4.39150654e-6f);
        p = fma(p, w, 2.1858087e-4f);
        p = fma(p, w, -1.25372503e-3f);
        p = fma(p, w, -4.17768164e-3f);
        p = fma(p, w, 2.46640727e-1f);
        p = fma(p, w, 1.50140941f);
    } else {
        w = sqrt(w) - 3.0f;
        p = fma(-2.00214257e-4f, w, 1.00950558e-4f);
        p = fma(p, w, 1.34934322e-3f);
        p = fma(p, w, -3.67342844e-3f);
        p = fma(p, w, 5.73950773e-3f);
        p = fma(p, w, -7.6224613e-3f);
        p = fma(p, w, 9.43887047e-3f);
        p = fma(p, w, 1.00167406f);
        p = fma(p, w, 2.83297682f);
    }
    return p * x;
}
