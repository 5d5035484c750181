// GLSL's types, functions and variables, as far as the shaders use them, in OpenCL C 1.2: see `src/translate/opencl.rs`.

// Products and sums are not contracted, as in GLSL where it is `precise`.
#pragma OPENCL FP_CONTRACT OFF
#define precise

typedef uchar uint8_t;
typedef ushort uint16_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef uint2 uvec2;
typedef uint4 uvec4;
typedef float2 vec2;
typedef float4 vec4;
#ifdef DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double2 dvec2;
#endif

// Memory by its address.
#define MEMORY(NAME, TYPE) \
    typedef struct { global TYPE *v; } NAME##_elements; \
    static NAME##_elements NAME(ulong at) { \
        NAME##_elements elements; \
        elements.v = (global TYPE *)at; \
        return elements; \
    }
MEMORY(F32, float)
MEMORY(U64, long)
MEMORY(U32, uint)
// Read and written by several threads of a group.
MEMORY(C32, volatile uint)
MEMORY(U16, ushort)
MEMORY(U8, uchar)
MEMORY(P64, uint2)
MEMORY(F128, float4)
#ifdef DOUBLE
MEMORY(F64, double)
#endif

// Of the lower 16 bits: not all GPUs have subnormal numbers, so that those of 16 bits are counted in units of 2^-24.
static float unpack_half(uint x) {
    uint size = (x & 0x7fffu) << 13, sign = (x & 0x8000u) << 16;
    // 2^112 is what the exponents differ by; an infinity or a NaN has its exponent already.
    float magnitude = size >= 0x0f800000u ? as_float(size | 0x7f800000u)
        : size < 0x00800000u ? (float)(x & 0x3ffu) * 5.9604644775390625e-8f
        : as_float(size) * 5.192296858534828e33f;
    return as_float(as_uint(magnitude) | sign);
}
static float2 unpackHalf2x16(uint x) { return (float2)(unpack_half(x), unpack_half(x >> 16)); }
static float mixture(float a, float b, float part) { return a * (1.0f - part) + b * part; }
#define mix mixture
// OpenCL's `abs` is of integers, and unsigned. The overflow of signed integers is undefined.
#ifdef IS_FLOATING
#define abs fabs
#define PLUS(a, b) ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#define TIMES(a, b) ((a) * (b))
#define NEGATIVE(a) (-(a))
#else
#define PLUS(a, b) ((long)((ulong)(a) + (ulong)(b)))
#define MINUS(a, b) ((long)((ulong)(a) - (ulong)(b)))
#define TIMES(a, b) ((long)((ulong)(a) * (ulong)(b)))
#define NEGATIVE(a) MINUS(0, a)
#define SHIFTED_LEFT(a, bits) ((long)((ulong)(a) << (bits)))
#define abs(x) ((x) < 0 ? NEGATIVE(x) : (x))
#endif
#define roundEven rint
#define floatBitsToUint as_uint
#define uintBitsToFloat as_float
#define packUint2x32 as_ulong
#define doubleBitsToUint64 as_ulong
#define uint64BitsToDouble as_double
#define bitfieldExtract(x, first, bits) ((int)((uint)(x) << (32 - (bits) - (first))) >> (32 - (bits)))
#define umulExtended(a, b, high, low) ((high) = mul_hi(a, b), (low) = (a) * (b))
#define lessThanEqual(a, b) ((a) <= (b))
#define greaterThanEqual(a, b) ((a) >= (b))
#define equal(a, b) ((a) == (b))

// A device without the instruction would compute it step by step.
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

#define gl_LocalInvocationIndex ((uint)get_local_id(0))
#define gl_LocalInvocationID ((uint2)((uint)get_local_id(0), 0))
#define gl_GlobalInvocationID ((uint3)((uint)get_global_id(0), (uint)get_global_id(1), (uint)get_global_id(2)))
#define gl_WorkGroupSize ((uint2)((uint)get_local_size(0), 1))
#define gl_WorkGroupID ((uint3)((uint)get_group_id(0), (uint)get_group_id(1), (uint)get_group_id(2)))
#define gl_NumWorkGroups ((uint3)((uint)get_num_groups(0), (uint)get_num_groups(1), (uint)get_num_groups(2)))
#define barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
// The barrier behind it does that too.
#define memoryBarrierBuffer()
