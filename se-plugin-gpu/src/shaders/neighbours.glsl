// V neighbours in memory at once: four if IS_WIDE, where the first is at a multiple of four, or else one, of which all four are
// copies. Whoever includes it has both constants, and the elements' TYPE.

const uint V = IS_WIDE ? 4 : 1;

vec4 elements(uint64_t at, uint i) { return IS_WIDE ? load_four(at, i / 4, TYPE) : vec4(load(at, i, TYPE)); }

void store_elements(uint64_t at, uint i, uint type, vec4 four) {
    if (IS_WIDE) store_four(at, i / 4, type, four);
    else store(at, i, type, four[0]);
}

// V neighbouring floats, of any TYPE of elements.
vec4 floats(uint64_t at, uint i) { return IS_WIDE ? load_four(at, i / 4, T_F32) : vec4(F32(at).v[i]); }
void store_floats(uint64_t at, uint i, vec4 four) { store_elements(at, i, T_F32, four); }
