// What all shaders share: tensors by their addresses, elements by their types.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#ifdef COOPERATIVE
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#endif

// The type that is computed with: `float`, `int64_t` for integers and bool, or `double`, which not every GPU has.
#ifdef DOUBLE
#define COMPUTE double
#define SCALAR double
#define IS_FLOATING
#else
#define SCALAR float
#ifndef COMPUTE
#define COMPUTE float
#define IS_FLOAT
#define IS_FLOATING
#endif
#endif

// Signed integers wrap around. In C their overflow is undefined, so `cuda.h` and `opencl.h` have these macros too.
#ifndef PLUS
#define PLUS(a, b) ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#define TIMES(a, b) ((a) * (b))
#define NEGATIVE(a) (-(a))
#define SHIFTED_LEFT(a, bits) ((a) << (bits))
#endif

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer F32 { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer U64 { int64_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer U32 { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer U16 { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer U8 { uint8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer F128 { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer P64 { uvec2 v[]; };
#ifdef DOUBLE
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer F64 { double v[]; };
#endif

// Types of elements: `element_type` in `src/launch.rs`.
const uint T_F32 = 0, T_F16 = 1, T_BF16 = 2, T_I64 = 3, T_I32 = 4, T_I16 = 5, T_I8 = 6, T_U8 = 7, T_U16 = 8, T_U32 = 9,
           T_U64 = 10, T_BOOL = 11;
#ifdef DOUBLE
const uint T_F64 = 12;
#endif

// The index of an element that is not there.
const uint NONE = 0xffffffffu;

float from_bf16(uint bits) { return uintBitsToFloat(bits << 16); }
#ifndef HAS_TO_BF16
uint to_bf16(float x) {
    uint bits = floatBitsToUint(x);
    // To the nearest, ties to even; NaN stays NaN.
    return isnan(x) ? 0x7fc0u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
#endif
#ifndef HAS_TO_F16
// Not `packHalf2x16`, which may round in any direction.
uint to_f16(float x) {
    uint bits = floatBitsToUint(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7e00u;
    if (size >= 0x477ff000u) return sign | 0x7c00u;
    if (size < 0x38800000u) {
        // A subnormal number: the sum rounds it to a multiple of 2^-24.
        precise float sum = uintBitsToFloat(size) + 0.5f;
        return sign | (floatBitsToUint(sum) - floatBitsToUint(0.5f));
    }
    return sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13);
}
#endif

COMPUTE load(uint64_t at, uint i, uint type) {
    switch (type) {
#ifdef DOUBLE
        case T_F64: return F64(at).v[i];
#endif
        case T_F32: return COMPUTE(F32(at).v[i]);
        case T_F16: return COMPUTE(unpackHalf2x16(uint(U16(at).v[i])).x);
        case T_BF16: return COMPUTE(from_bf16(uint(U16(at).v[i])));
        case T_I32: return COMPUTE(int(U32(at).v[i]));
        case T_U32: return COMPUTE(U32(at).v[i]);
        case T_I16: return COMPUTE(bitfieldExtract(int(uint(U16(at).v[i])), 0, 16));
        case T_U16: return COMPUTE(uint(U16(at).v[i]));
        case T_I8: return COMPUTE(bitfieldExtract(int(uint(U8(at).v[i])), 0, 8));
        case T_U8: return COMPUTE(uint(U8(at).v[i]));
        case T_BOOL: return COMPUTE(uint(U8(at).v[i]) != 0u);
        default: return COMPUTE(U64(at).v[i]);
    }
}

#ifdef IS_FLOAT
// Four neighbours, of which the first is at a multiple of four: floats.
vec4 load_four(uint64_t at, uint i, uint type) {
    if (type == T_F32) return F128(at).v[i];
    uvec2 bits = P64(at).v[i];
    if (type == T_BF16) return vec4(from_bf16(bits.x), uintBitsToFloat(bits.x & 0xffff0000u), from_bf16(bits.y), uintBitsToFloat(bits.y & 0xffff0000u));
    vec2 first = unpackHalf2x16(bits.x), last = unpackHalf2x16(bits.y);
    return vec4(first.x, first.y, last.x, last.y);
}
uint bits_of_two(float low, float high, uint type) {
    return type == T_BF16 ? to_bf16(low) | to_bf16(high) << 16 : to_f16(low) | to_f16(high) << 16;
}
void store_four(uint64_t at, uint i, uint type, vec4 four) {
    if (type == T_F32) F128(at).v[i] = four;
    else P64(at).v[i] = uvec2(bits_of_two(four[0], four[1], type), bits_of_two(four[2], four[3], type));
}
#endif

void store(uint64_t at, uint i, uint type, COMPUTE x) {
    switch (type) {
#ifdef DOUBLE
        case T_F64: F64(at).v[i] = x; break;
#endif
        case T_F32: F32(at).v[i] = float(x); break;
        case T_F16: U16(at).v[i] = uint16_t(to_f16(float(x))); break;
        case T_BF16: U16(at).v[i] = uint16_t(to_bf16(float(x))); break;
        case T_I32: U32(at).v[i] = uint(int(x)); break;
        case T_U32: U32(at).v[i] = uint(x); break;
        case T_I16: case T_U16: U16(at).v[i] = uint16_t(uint(int(x))); break;
        case T_I8: case T_U8: U8(at).v[i] = uint8_t(uint(int(x))); break;
        case T_BOOL: U8(at).v[i] = uint8_t(x != COMPUTE(0) ? 1u : 0u); break;
        default: U64(at).v[i] = int64_t(x); break;
    }
}

// What a value becomes when it is stored.
COMPUTE rounded(COMPUTE x, uint type) {
    switch (type) {
        case T_F16: return COMPUTE(unpackHalf2x16(to_f16(float(x))).x);
        case T_BF16: return COMPUTE(from_bf16(to_bf16(float(x))));
        default: return x;
    }
}
