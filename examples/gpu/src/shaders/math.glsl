// Functions of floats. Those of GLSL may be off by more than a float's last digits, differently with each driver.

#define INFINITY uintBitsToFloat(0x7f800000u)
#define NAN uintBitsToFloat(0x7fc00000u)

float exp_series(float r) {
    float p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    return fma(p, r * r, r);
}

float exp_(float x) {
    if (isnan(x)) return x;
    if (x > 88.8) return INFINITY;
    if (x < -104.0) return 0.0;
    float n = roundEven(x * 1.44269504);
    float r = fma(n, 2.12194440e-4, fma(n, -0.693359375, x));
    // In two steps, since 2^n may be too large or too small for a float.
    int whole = int(n), half_ = whole / 2;
    return (exp_series(r) + 1.0) * uintBitsToFloat(uint(half_ + 127) << 23) * uintBitsToFloat(uint(whole - half_ + 127) << 23);
}

float expm1_(float x) { return abs(x) < 0.34 ? exp_series(x) : exp_(x) - 1.0; }

float log_(float x) {
    if (x < 0.0 || isnan(x)) return NAN;
    if (x == 0.0) return -INFINITY;
    if (isinf(x)) return x;
    float e = 0.0;
    if (x < 1.17549435e-38) { x *= 8388608.0; e = -23.0; }
    uint bits = floatBitsToUint(x);
    float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f000000u);
    e += float(int(bits >> 23) - 126);
    if (m < 0.70710678) { e -= 1.0; m = m + m; }
    float r = m - 1.0, z = r * r, p = 7.0376836292e-2;
    p = fma(p, r, -1.1514610310e-1);
    p = fma(p, r, 1.1676998740e-1);
    p = fma(p, r, -1.2420140846e-1);
    p = fma(p, r, 1.4249322787e-1);
    p = fma(p, r, -1.6668057665e-1);
    p = fma(p, r, 2.0000714765e-1);
    p = fma(p, r, -2.4999993993e-1);
    p = fma(p, r, 3.3333331174e-1);
    float y = p * r * z + e * -2.12194440e-4 - 0.5 * z;
    return r + y + e * 0.693359375;
}

float log1p_(float x) {
    if (isinf(x) && x > 0.0) return x;
    precise float u = 1.0 + x;
    precise float back = u - 1.0;
    return back == 0.0 ? x : log_(u) * x / back;
}

float tanh_(float x) {
    if (abs(x) > 10.0) return sign(x);
    float e = expm1_(2.0 * abs(x));
    float t = e / (e + 2.0);
    return x < 0.0 ? -t : t;
}

float sigmoid(float x) { return 1.0 / (1.0 + exp_(-x)); }
float softplus(float x) { return x > 20.0 ? x : log1p_(exp_(x)); }

// Sine, or cosine with a quarter of a turn more.
float sine(float x, int quarter) {
    if (isinf(x)) return NAN;
    float n = roundEven(x * 0.636619772);
    float r = fma(n, -7.54978995489e-8, fma(n, -4.837512969970703125e-4, fma(n, -1.5703125, x)));
    float z = r * r;
    int at = int(n) + quarter;
    float s = fma(fma(fma(fma(-1.9515295891e-4, z, 8.3321608736e-3), z, -1.6666654611e-1), z, 0.0), r, r);
    float c = fma(fma(fma(2.443315711809948e-5, z, -1.388731625493765e-3), z, 4.166664568298827e-2), z * z, 1.0 - 0.5 * z);
    float value = (at & 1) == 0 ? s : c;
    return (at & 2) == 0 ? value : -value;
}

// exp(x^2) erfc(x) for x >= 0 (Abramowitz and Stegun, 7.1.26), times exp(-x^2).
float erfc_positive(float x) {
    float t = 1.0 / fma(0.3275911, x, 1.0);
    float p = fma(fma(fma(fma(1.061405429, t, -1.453152027), t, 1.421413741), t, -0.284496736), t, 0.254829592) * t;
    return p * exp_(-x * x);
}
float erf_(float x) {
    if (abs(x) < 0.5) {
        float z = x * x;
        float p = fma(fma(fma(fma(-7.5757576e-4, z, 4.6296296e-3), z, -2.3809524e-2), z, 0.1), z, -0.33333333);
        return 1.12837917 * x * fma(p, z, 1.0);
    }
    float value = 1.0 - erfc_positive(abs(x));
    return x < 0.0 ? -value : value;
}
float erfc_(float x) {
    if (abs(x) < 0.5) return 1.0 - erf_(x);
    return x < 0.0 ? 2.0 - erfc_positive(-x) : erfc_positive(x);
}

float pow_(float x, float y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (isnan(x) || isnan(y)) return NAN;
    bool is_whole = floor(y) == y, is_odd = is_whole && abs(y) < 16777216.0 && (int(y) & 1) == 1;
    if (x < 0.0 && !is_whole && !isinf(x)) return NAN;
    float size;
    if (isinf(y)) {
        size = abs(x) == 1.0 ? 1.0 : (abs(x) > 1.0) == (y > 0.0) ? INFINITY : 0.0;
    } else if (x == 0.0 || isinf(x)) {
        size = (x == 0.0) == (y > 0.0) ? 0.0 : INFINITY;
    } else {
        size = exp_(y * log_(abs(x)));
    }
    return x < 0.0 && is_odd ? -size : size;
}
