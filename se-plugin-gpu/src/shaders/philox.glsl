// Philox 4x32-10 as TensorFlow's: 128 bits for each counter.

// So many counters are for each result that takes as many as it needs.
const uint RESERVED = 256;

uvec4 philox(uvec4 counter, uvec2 key) {
    for (int round = 0; round < 10; round++) {
        uint high0, low0, high1, low1;
        umulExtended(0xD2511F53u, counter.x, high0, low0);
        umulExtended(0xCD9E8D57u, counter.z, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// A key and the first counter.
struct Philox { uint64_t key, low, high; };

// From three numbers, or from two tensors with one and two.
Philox philox_of(uint64_t key, uint64_t counter, uint64_t high, bool are_tensors) {
    Philox from;
    from.key = key;
    from.low = counter;
    from.high = high;
    if (are_tensors) {
        from.low = uint64_t(U64(counter).v[0]);
        from.high = uint64_t(U64(counter).v[1]);
        from.key = uint64_t(U64(key).v[0]);
    }
    return from;
}

// The bits of the counter that is `skipped` behind the first one.
uvec4 bits_of(Philox from, uint64_t skipped) {
    uint64_t at = from.low + skipped, high = from.high + (at < from.low ? 1 : 0), key = from.key;
    return philox(uvec4(uint(at), uint(at >> 32), uint(high), uint(high >> 32)), uvec2(uint(key), uint(key >> 32)));
}

// The 52 bits of a double from 0 to below 1.
uint64_t double_bits(uvec2 bits) { return uint64_t(bits.x & 0xfffffu) << 32 | uint64_t(bits.y); }
float double_unit(uvec2 bits) { return float(double_bits(bits)) * 2.220446049250313e-16f; }
