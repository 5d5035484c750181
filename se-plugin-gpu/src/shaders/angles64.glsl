// Angles in doubles: `math64.glsl` includes it.

// Bits of 2 / pi, 32 at a time, behind 64 zeros.
uint quarter_bits(uint at) {
    switch (at) {
        case 2: return 0xa2f9836eu;
        case 3: return 0x4e441529u;
        case 4: return 0xfc2757d1u;
        case 5: return 0xf534ddc0u;
        case 6: return 0xdb629599u;
        case 7: return 0x3c439041u;
        case 8: return 0xfe5163abu;
        case 9: return 0xdebbc561u;
        case 10: return 0xb7246e3au;
        case 11: return 0x424dd2e0u;
        case 12: return 0x06492eeau;
        case 13: return 0x09d1921cu;
        case 14: return 0xfe1deb1cu;
        case 15: return 0xb129a73eu;
        case 16: return 0xe88235f5u;
        case 17: return 0x2ebb4484u;
        case 18: return 0xe99c7026u;
        case 19: return 0xb45f7e41u;
        case 20: return 0x3991d639u;
        case 21: return 0x835339f4u;
        case 22: return 0x9c845f8bu;
        case 23: return 0xbdf9283bu;
        case 24: return 0x1ff897ffu;
        case 25: return 0xde05980fu;
        case 26: return 0xef2f118bu;
        case 27: return 0x5a0a6d1fu;
        case 28: return 0x6d367ecfu;
        case 29: return 0x27cb09b7u;
        case 30: return 0x4f463f66u;
        case 31: return 0x9e5fea2du;
        case 32: return 0x7527bac7u;
        case 33: return 0xebe5f17bu;
        case 34: return 0x3d0739f7u;
        case 35: return 0x8a5292eau;
        case 36: return 0x6bfb5fb1u;
        case 37: return 0x1f8d5d08u;
        case 38: return 0x56033046u;
        case 39: return 0xfc7b6babu;
        case 40: return 0xf0cfbc20u;
        default: return 0u;
    }
}

// An angle: how many quarters of a turn, of four, and what is left, as a sum of two numbers.
struct Angle { int quarters; double rest, more; };

Angle angle_of_rest(double first, double second, int quarters) {
    dvec2 sum = sum_of(first, second);
    Angle angle;
    angle.quarters = quarters;
    angle.rest = sum.x;
    angle.more = sum.y;
    return angle;
}

// Of a positive number, from 2^19 on: by M. Payne and R. Hanek, "Radian reduction for trigonometric functions" (1983).
Angle angle_of_large(double x) {
    uint64_t bits = doubleBitsToUint64(x), digits = (bits & 0xffffffffffffful) | 0x10000000000000ul;
    // The number is `digits` 2^e. Of 2 / pi, bits that make whole turns are left out.
    int e = int(uint(bits >> 52)) - 1075;
    uint from = uint(e + 62), at = from / 32u, shift = from % 32u;
    uint64_t low = digits & 0xfffffffful, high = digits >> 32, carry = 0ul, first = 0ul, second = 0ul;
    uint64_t next = 0ul;
    // Words of the product, from the last: six, of which the first four are behind the point of a turn.
    for (int i = 5; i >= 0; i--) {
        uint64_t both = uint64_t(quarter_bits(at + uint(i))) << 32 | uint64_t(quarter_bits(at + uint(i) + 1u));
        uint64_t word = (both << shift) >> 32, product = low * word;
        uint64_t sum = (product & 0xfffffffful) + high * next + carry;
        carry = (sum >> 32) + (product >> 32);
        next = word;
        sum = sum & 0xfffffffful;
        if (i == 3) second = sum;
        if (i == 2) second |= sum << 32;
        if (i == 1) first = sum;
        if (i == 0) first |= sum << 32;
    }
    int quarters = int(uint(first >> 62));
    first = first << 2 | second >> 62;
    second = second << 2;
    // More than a half is less than nothing of the next quarter.
    bool is_negative = first >> 63 != 0ul;
    if (is_negative) {
        quarters++;
        second = ~second + 1ul;
        first = ~first + (second == 0ul ? 1ul : 0ul);
    }
    precise double a = double(int64_t(first >> 32)) * 2.3283064365386963e-10lf;
    precise double b = double(int64_t(first & 0xfffffffful)) * 5.421010862427522e-20lf;
    precise double c = double(int64_t(second >> 32)) * 1.262177448353619e-29lf + double(int64_t(second & 0xfffffffful)) * 2.938735877055719e-39lf;
    dvec2 sum = sum_of(a, b);
    precise double more = sum.y + c;
    dvec2 part = product_of_sums(sum_of(sum.x, more), dvec2(1.5707963267948966lf, 6.123233995736766e-17lf));
    return is_negative ? angle_of_rest(-part.x, -part.y, quarters) : angle_of_rest(part.x, part.y, quarters);
}

Angle angle_of(double x) {
    double size = abs(x);
    if (size >= 524288.0lf) {
        Angle angle = angle_of_large(size);
        if (x > 0.0lf) return angle;
        return angle_of_rest(-angle.rest, -angle.more, -angle.quarters);
    }
    double n = roundEven(x * 0.6366197723675814lf);
    // pi / 2 in three parts, of which the products with the first two are exact.
    precise double first = x - n * 1.5707963267341256lf;
    dvec2 sum = sum_of(first, -(n * 6.077100506303966e-11lf));
    precise double more = sum.y - n * 2.0222662487959506e-21lf;
    return angle_of_rest(sum.x, more, int(n));
}

// Sine, or cosine with a quarter of a turn more.
double sine(double x, int quarter) {
    if (isinf(x) || isnan(x)) return NAN;
    // Which has a sign.
    if (abs(x) < 1.0e-8lf && quarter == 0) return x;
    Angle angle = angle_of(x);
    double r = angle.rest;
    precise double z = r * r;
    precise double s = -8.22063524662433e-18lf;
    s = s * z + 2.8114572543455206e-15lf;
    s = s * z - 7.647163731819816e-13lf;
    s = s * z + 1.6059043836821613e-10lf;
    s = s * z - 2.505210838544172e-08lf;
    s = s * z + 2.7557319223985893e-06lf;
    s = s * z - 0.0001984126984126984lf;
    s = s * z + 0.008333333333333333lf;
    s = s * z - 0.16666666666666666lf;
    s = r + (s * (z * r) + angle.more * (1.0lf - 0.5lf * z));
    precise double c = -1.5619206968586225e-16lf;
    c = c * z + 4.779477332387385e-14lf;
    c = c * z - 1.1470745597729725e-11lf;
    c = c * z + 2.08767569878681e-09lf;
    c = c * z - 2.755731922398589e-07lf;
    c = c * z + 2.48015873015873e-05lf;
    c = c * z - 0.001388888888888889lf;
    c = c * z + 0.041666666666666664lf;
    precise double half_square = 0.5lf * z, rest = 1.0lf - half_square;
    c = rest + (((1.0lf - rest) - half_square) + (c * (z * z) - r * angle.more));
    int at = angle.quarters + quarter;
    double value = (at & 1) == 0 ? s : c;
    return (at & 2) == 0 ? value : -value;
}

// Of numbers from 0 to 1: the tangent of a difference to 1/2 or 1 is at most 1/3.
double atan_small(double x) {
    double known = x < 0.4375lf ? 0.0lf : x < 0.75lf ? 0.5lf : 1.0lf;
    precise double r = (x - known) / (1.0lf + x * known), z = r * r;
    precise double p = -0.012503561204052023lf;
    p = p * z + 0.02915774125849466lf;
    p = p * z - 0.040369307512387514lf;
    p = p * z + 0.047016984059982676lf;
    p = p * z - 0.052551027204789595lf;
    p = p * z + 0.058816033147296366lf;
    p = p * z - 0.06666618529880829lf;
    p = p * z + 0.07692305609796836lf;
    p = p * z - 0.09090909032855049lf;
    p = p * z + 0.11111111110145121lf;
    p = p * z - 0.14285714285705914lf;
    p = p * z + 0.1999999999999997lf;
    p = p * z - 0.3333333333333333lf;
    double of_known = known == 0.0lf ? 0.0lf : known == 0.5lf ? 0.4636476090008061lf : 0.7853981633974483lf;
    double more = known == 0.0lf ? 0.0lf : known == 0.5lf ? 2.2698777452961687e-17lf : 3.061616997868383e-17lf;
    precise double angle = of_known + (r + (p * z * r + more));
    return angle;
}
// The angle of a point.
double atan2_(double y, double x) {
    if (isnan(x) || isnan(y)) return NAN;
    double across = abs(x), up = abs(y);
    bool is_steep = up > across;
    double ratio = across == up ? (across == 0.0lf ? 0.0lf : 1.0lf) : is_steep ? across / up : up / across;
    precise double angle = atan_small(ratio);
    if (is_steep) angle = 1.5707963267948966lf - (angle - 6.123233995736766e-17lf);
    // Zeros have signs too.
    if (doubleBitsToUint64(x) >> 63 != 0ul) angle = 3.141592653589793lf - (angle - 1.2246467991473532e-16lf);
    return with_sign_of(angle, y);
}
double asin_small(double x) {
    precise double z = x * x;
    precise double p = 0.02965806130390572lf;
    p = p * z - 0.019313465666024366lf;
    p = p * z + 0.01960393110799315lf;
    p = p * z + 0.0030251140174674947lf;
    p = p * z + 0.009324648476317875lf;
    p = p * z + 0.009620961262630293lf;
    p = p * z + 0.011566564202171593lf;
    p = p * z + 0.013963771548009896lf;
    p = p * z + 0.017352816997695017lf;
    p = p * z + 0.022372157427705222lf;
    p = p * z + 0.030381944475855856lf;
    p = p * z + 0.04464285714254847lf;
    p = p * z + 0.07500000000000119lf;
    p = p * z + 0.16666666666666666lf;
    precise double angle = x + x * (p * z);
    return angle;
}
double asin_(double x) {
    double size = abs(x);
    if (size > 1.0lf) return NAN;
    return with_sign_of(size > 0.5lf ? 1.5707963267948966lf - (2.0lf * asin_small(sqrt(0.5lf * (1.0lf - size))) - 6.123233995736766e-17lf) : asin_small(size), x);
}
double acos_(double x) {
    if (abs(x) > 1.0lf) return NAN;
    if (x > 0.5lf) return 2.0lf * asin_small(sqrt(0.5lf * (1.0lf - x)));
    if (x < -0.5lf) return 3.141592653589793lf - (2.0lf * asin_small(sqrt(0.5lf * (1.0lf + x))) - 1.2246467991473532e-16lf);
    return 1.5707963267948966lf - (asin_small(x) - 6.123233995736766e-17lf);
}
