// Complex numbers: two floats each.
vec2 load_complex(uint64_t at, uint i) { return vec2(F32(at).v[2 * i], F32(at).v[2 * i + 1]); }
void store_complex(uint64_t at, uint i, vec2 x) {
    F32(at).v[2 * i] = x.x;
    F32(at).v[2 * i + 1] = x.y;
}
vec2 product(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
