// Elements of any type by their size, without arithmetic of small integers, which not every GPU has.
uint64_t load_bits(uint64_t at, uint i, uint size) {
    switch (size) {
        case 1: return uint64_t(uint(U8(at).v[i]));
        case 2: return uint64_t(uint(U16(at).v[i]));
        case 4: return uint64_t(U32(at).v[i]);
        default: return uint64_t(U64(at).v[i]);
    }
}

void store_bits(uint64_t at, uint i, uint size, uint64_t x) {
    switch (size) {
        case 1: U8(at).v[i] = uint8_t(uint(x)); break;
        case 2: U16(at).v[i] = uint16_t(uint(x)); break;
        case 4: U32(at).v[i] = uint(x); break;
        default: U64(at).v[i] = int64_t(x); break;
    }
}
