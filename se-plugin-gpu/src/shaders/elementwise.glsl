// The ops that compute one number of up to two. Their numbers are in `src/kernels/elementwise.rs`.
#ifdef IS_FLOATING
#ifdef DOUBLE
#include "math64.glsl"
#else
#include "math.glsl"
#endif
#endif

COMPUTE flag(bool is) { return COMPUTE(is ? 1 : 0); }

#ifdef IS_FLOATING
#ifdef DOUBLE
// As those of floats below, by the bits of a double.
#define LESS_THAN_0 0x8000000000000001ul, 0xfff0000000000000ul
#define MORE_THAN_6 0x4018000000000001ul, 0x7ff0000000000000ul
#define SELU_SCALE 1.0507009873554805lf
#define SELU_OFFSET 1.7580993408473768lf
bool is_within(double x, uint64_t first, uint64_t last) { return doubleBitsToUint64(x) - first <= last - first; }

double remainder(double a, double b) {
    uint64_t x = doubleBitsToUint64(a) & 0x7ffffffffffffffful, y = doubleBitsToUint64(b) & 0x7ffffffffffffffful;
    uint64_t unit = 0x10000000000000ul, infinity = 0x7ff0000000000000ul;
    if (x >= infinity || y > infinity || y == 0ul) return NAN;
    if (x < y) return a;
    uint exponent = max(uint(y >> 52), 1u), shift = max(uint(x >> 52), 1u) - exponent;
    uint64_t rest = x < unit ? x : (x & (unit - 1ul)) | unit, divisor = y < unit ? y : (y & (unit - 1ul)) | unit;
    rest %= divisor;
    while (shift > 0u && rest != 0ul) {
        uint bits = min(shift, 11u);
        rest = (rest << bits) % divisor;
        shift -= bits;
    }
    if (rest == 0ul) return with_sign_of(0.0lf, a);
    uint64_t size = doubleBitsToUint64(double(int64_t(rest)));
    size = uint(size >> 52) + exponent > 1075u ? size + (uint64_t(exponent) << 52) - (1075ul << 52) : rest << (exponent - 1u);
    return with_sign_of(uint64BitsToDouble(size), a);
}
// By the bits: a GPU may take subnormal numbers for 0.
bool has_other_sign(double rest, double b) {
    uint64_t bits = doubleBitsToUint64(rest);
    return bits << 1 != 0ul && (bits ^ doubleBitsToUint64(b)) >> 63 != 0ul;
}
#else
#define LESS_THAN_0 0x80000001u, 0xff800000u
#define MORE_THAN_6 0x40c00001u, 0x7f800000u
#define SELU_SCALE 1.0507009873554805f
#define SELU_OFFSET 1.7580993408473768f
// Whether the bits are. NVIDIA's driver makes `max` and `min` of comparisons of floats, which lose NaN and the sign of zero.
bool is_within(float x, uint first, uint last) { return floatBitsToUint(x) - first <= last - first; }

// Of a division towards zero, with no digit rounded: whole numbers are divided, eight bits at a time.
float remainder(float a, float b) {
    uint x = floatBitsToUint(a) & 0x7fffffffu, y = floatBitsToUint(b) & 0x7fffffffu;
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) return NAN;
    if (x < y) return a;
    // A number is `rest`, or `divisor`, times 2 to the power of its exponent without 150.
    uint exponent = max(y >> 23, 1u), shift = max(x >> 23, 1u) - exponent;
    uint rest = x < 0x800000u ? x : (x & 0x7fffffu) | 0x800000u, divisor = y < 0x800000u ? y : (y & 0x7fffffu) | 0x800000u;
    rest %= divisor;
    while (shift > 0u && rest != 0u) {
        uint bits = min(shift, 8u);
        rest = (rest << bits) % divisor;
        shift -= bits;
    }
    if (rest == 0u) return with_sign_of(0.0f, a);
    // Back to a float, which may be subnormal.
    uint size = floatBitsToUint(float(rest));
    size = (size >> 23) + exponent > 150u ? size + (exponent << 23) - (150u << 23) : rest << (exponent - 1u);
    return with_sign_of(uintBitsToFloat(size), a);
}

#endif

precise COMPUTE compute(uint op, COMPUTE a, COMPUTE b, float number, uint type) {
    switch (op) {
        case 3: return a / b;
        case 4: return isnan(a) || isnan(b) ? NAN : max(a, b);
        case 5: return isnan(a) || isnan(b) ? NAN : min(a, b);
        case 7: return floor(rounded(a / b, type));
        case 8: {
            COMPUTE rest = remainder(a, b);
#ifdef DOUBLE
            return has_other_sign(rest, b) ? rest + b : rest;
#else
            // By the bits: a GPU may take subnormal numbers for 0.
            uint bits = floatBitsToUint(rest);
            return bits << 1 != 0u && (bits ^ floatBitsToUint(b)) >> 31 != 0u ? rest + b : rest;
#endif
        }
        case 9: return b == 0.0f ? 0.0f : a / b;
        case 10: return b == 0.0f ? 0.0f : a * b;
        case 12: return a == 0.0f ? 0.0f : a * rounded(log_(b), type);
        case 13: return a == 0.0f ? 0.0f : a / b;
        // A product, as on the CPU: an infinite gradient times 0 is not a number.
        case 21: return a * flag(b > 0.0f);
        case 22: return a * flag(b > 0.0f && b < 6.0f);
        case 23: return b < 0.0f ? a * (b + 1.0f) : a;
        case 24: return b < 0.0f ? a * (b + SELU_OFFSET) : a * SELU_SCALE;
        case 25: return a * sigmoid(b);
        case 26: { COMPUTE s = 1.0f + abs(b); return a / (s * s); }
        case 27: return b * a * (1.0f - a);
        case 28: return b * (1.0f - a * a);
        case 29: return b == 0.0f ? 0.0f : 0.5f * b / a;
        case 30: return b == 0.0f ? 0.0f : -0.5f * b * a * a * a;
        case 31: return b == 0.0f ? 0.0f : -b * a * a;
        case 32: return b > 0.0f ? a : a * number;
        case 45: return is_within(a, LESS_THAN_0) ? 0.0f : a;
        case 46: return is_within(a, LESS_THAN_0) ? 0.0f : is_within(a, MORE_THAN_6) ? 6.0f : a;
        case 47: return a < 0.0f ? expm1_(a) : a;
        case 48: return a < 0.0f ? SELU_OFFSET * expm1_(a) : SELU_SCALE * a;
        case 49: return softplus(a);
        case 50: return a / (1.0f + abs(a));
        case 51: return sigmoid(a);
        case 52: return tanh_(a);
        case 53: return sqrt(a);
        case 54: return 1.0f / sqrt(a);
        case 55: return exp_(a);
        case 56: return expm1_(a);
        case 57: return log_(a);
        case 58: return log1p_(a);
        case 63: return floor(a);
        case 64: return ceil(a);
        case 65: return roundEven(a);
        case 66: return 1.0f / a;
        case 67: return flag(isnan(a));
        case 68: return flag(isinf(a));
        case 69: return flag(!isnan(a) && !isinf(a));
        case 70: return a > 0.0f ? a : a * number;
#ifdef LONG
        // In shaders of their own: they would take a driver longer to compile than all others together.
        case 11: return pow_(a, b);
        case 14: return atan2_(a, b);
        case 59: return sine(a, 0);
        case 60: return sine(a, 1);
        case 61: return erf_(a);
        case 62: return erfc_(a);
        case 74: return sine(a, 0) / sine(a, 1);
        case 75: return asin_(a);
        case 76: return acos_(a);
        case 77: return atan2_(a, 1.0f);
        case 78: return sinh_(a);
        case 79: return cosh_(a);
        case 80: return asinh_(a);
        case 81: return acosh_(a);
        case 82: return atanh_(a);
        case 83: return erfinv_(a);
#endif
    }
    return a;
}
#else
// Bits to shift by: fewer than the type has.
uint bits_of(int64_t count, uint type) {
    if (type == T_U64 && count < 0) return 63u;
    int64_t most = type == T_I8 || type == T_U8 ? 7 : type == T_I16 || type == T_U16 ? 15 : type == T_I32 || type == T_U32 ? 31 : 63;
    return uint(min(max(count, int64_t(0)), most));
}

// The sum of two doubles by their bits, to the nearest, ties to even: GPUs need not have the type.
int64_t add_doubles(int64_t first, int64_t second) {
    uint64_t one = uint64_t(1), sign_bit = one << 63, infinity = uint64_t(0x7ff) << 52;
    uint64_t a = uint64_t(first), b = uint64_t(second);
    if ((a & ~sign_bit) < (b & ~sign_bit)) { a = uint64_t(second); b = uint64_t(first); }
    uint64_t large = a & ~sign_bit, small = b & ~sign_bit, sign = a & sign_bit;
    if (large >= infinity) return large > infinity || (small == infinity && a != b) ? int64_t(uint64_t(0xfff) << 51) : int64_t(a);
    uint large_exponent = uint(large >> 52), small_exponent = uint(small >> 52);
    // 53 digits, and ten more for what is rounded.
    uint64_t x = (large & ((one << 52) - one)) << 10, y = (small & ((one << 52) - one)) << 10;
    if (large_exponent > 0u) x |= one << 62; else large_exponent = 1u;
    if (small_exponent > 0u) y |= one << 62; else small_exponent = 1u;
    uint shift = min(large_exponent - small_exponent, 63u), exponent = large_exponent;
    // The last digit says whether there are more behind it.
    y = (y >> shift) | ((y & ((one << shift) - one)) != uint64_t(0) ? one : uint64_t(0));
    x = sign == (b & sign_bit) ? x + y : x - y;
    if (x == uint64_t(0)) return int64_t(a & b & sign_bit);
    if ((x & sign_bit) != uint64_t(0)) { x = (x >> 1) | (x & one); exponent++; }
    while ((x & (one << 62)) == uint64_t(0) && exponent > 1u) { x <<= 1; exponent--; }
    uint64_t rest = x & uint64_t(1023), digits = x >> 10;
    if (rest > uint64_t(512) || (rest == uint64_t(512) && (digits & one) != uint64_t(0))) digits += one;
    uint64_t sum = (uint64_t(exponent - 1u) << 52) + digits;
    return int64_t(sign | (sum < infinity ? sum : infinity));
}

// Of a division, rounded down; 0 for one by 0.
int64_t quotient(int64_t a, int64_t b, uint type) {
    if (b == 0) return b;
    if (type == T_U64) return int64_t(uint64_t(a) / uint64_t(b));
    // The smallest number has no negative one.
    if (b == -1) return NEGATIVE(a);
    int64_t towards_zero = a / b;
    // By the bit of the sign: lavapipe of Mesa 22.3 is wrong about the signs of smaller numbers.
    bool is_negative = uint64_t(a ^ b) >> 63 != uint64_t(0);
    return is_negative && TIMES(towards_zero, b) != a ? towards_zero - 1 : towards_zero;
}

precise COMPUTE compute(uint op, int64_t a, int64_t b, float number, uint type) {
    switch (op) {
        case 4: return max(a, b);
        case 5: return min(a, b);
        case 7: return quotient(a, b, type);
        case 8: return b == 0 ? b : MINUS(a, TIMES(quotient(a, b, type), b));
        case 84: return a & b;
        case 85: return a | b;
        case 86: return a ^ b;
        case 87: return ~a;
        case 88: return SHIFTED_LEFT(a, bits_of(b, type));
        case 89: return type == T_U64 ? int64_t(uint64_t(a) >> bits_of(b, type)) : a >> bits_of(b, type);
        case 90: return add_doubles(a, b);
    }
    return a;
}
#endif

// Op `op` of two numbers of a type, or of the first, and with a number of its own.
//
// Precise, so that a driver does not simplify an op with the next one in the same shader.
precise COMPUTE result(uint op, COMPUTE a, COMPUTE b, float number, uint type) {
    switch (op) {
        case 0: return PLUS(a, b);
        case 1: return MINUS(a, b);
        case 2: return TIMES(a, b);
        case 6: { COMPUTE d = rounded(MINUS(a, b), type); return TIMES(d, d); }
        case 15: return flag(a < b);
        case 16: return flag(a <= b);
        case 17: return flag(a > b);
        case 18: return flag(a >= b);
        case 19: return flag(a == b);
        case 20: return flag(a != b);
        case 33: return flag(a != COMPUTE(0) && b != COMPUTE(0));
        case 34: return flag(a != COMPUTE(0) || b != COMPUTE(0));
        case 41: return NEGATIVE(a);
        case 42: return abs(a);
        case 43: return TIMES(a, a);
        case 44: return a > COMPUTE(0) ? COMPUTE(1) : a < COMPUTE(0) ? COMPUTE(-1) : a;
        case 71: return flag(a == COMPUTE(0));
        case 72: return COMPUTE(0);
        case 73: return COMPUTE(1);
    }
    return compute(op, a, b, number, type);
}
