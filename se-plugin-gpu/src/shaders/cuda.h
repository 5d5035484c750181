// GLSL's types, functions and variables, as far as the shaders use them, in CUDA C++: see `src/translate/cuda.rs`.

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint;
typedef long long int64_t;
typedef unsigned long long uint64_t;

// The program is compiled with `--fmad=false`: nothing is contracted.
#define precise

// Memory by its address.
template <typename T> struct Elements {
    T *v;
    explicit Elements(uint64_t at) : v(reinterpret_cast<T *>(at)) {}
};
typedef Elements<float> F32;
typedef Elements<double> F64;
typedef Elements<int64_t> U64;
typedef Elements<uint> U32;
typedef Elements<uint> C32;
typedef Elements<uint16_t> U16;
typedef Elements<uint8_t> U8;

// An array that the threads of a block share.
#define SHARED(TYPE, NAME, COUNT) \
    struct NAME##_of_block { \
        TYPE &operator[](uint i) const { \
            alignas(16) __shared__ TYPE elements[COUNT]; \
            return elements[i]; \
        } \
    } NAME

struct bvec2 { bool x, y; };
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T x, y;
    Pair() = default;
    explicit Pair(T both) : x(both), y(both) {}
    Pair(T first, T second) : x(first), y(second) {}
};
typedef Pair<uint> uvec2;
typedef Pair<float> vec2;
typedef Pair<double> dvec2;
struct uvec4 {
    uint x, y, z, w;
    uvec4(uint first, uint second, uint third, uint fourth) : x(first), y(second), z(third), w(fourth) {}
};
struct alignas(16) vec4 {
    float v[4];
    vec4() = default;
    explicit vec4(float all) : v{all, all, all, all} {}
    vec4(float first, float second, float third, float fourth) : v{first, second, third, fourth} {}
    float &operator[](uint i) { return v[i]; }
    float operator[](uint i) const { return v[i]; }
};
inline vec4 operator+(vec4 a, vec4 b) { return vec4(a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]); }
inline vec4 operator-(vec4 a, vec4 b) { return vec4(a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]); }
inline vec4 operator*(vec4 a, vec4 b) { return vec4(a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]); }
inline vec4 operator*(vec4 a, float b) { return a * vec4(b); }
typedef Elements<uvec2> P64;
typedef Elements<vec4> F128;

template <typename T> Pair<T> operator+(Pair<T> a, Pair<T> b) { return Pair<T>(a.x + b.x, a.y + b.y); }
template <typename T> Pair<T> &operator+=(Pair<T> &a, Pair<T> b) { return a = a + b; }
inline uvec2 operator-(uvec2 a, uvec2 b) { return uvec2(a.x - b.x, a.y - b.y); }
inline uvec2 operator*(uvec2 a, uvec2 b) { return uvec2(a.x * b.x, a.y * b.y); }
inline uvec2 operator/(uvec2 a, uvec2 b) { return uvec2(a.x / b.x, a.y / b.y); }
inline uvec2 operator%(uvec2 a, uvec2 b) { return uvec2(a.x % b.x, a.y % b.y); }
inline vec2 operator*(float a, vec2 b) { return vec2(a * b.x, a * b.y); }
inline bvec2 lessThanEqual(uvec2 a, uvec2 b) { return bvec2{a.x <= b.x, a.y <= b.y}; }
inline bvec2 greaterThanEqual(uvec2 a, uvec2 b) { return bvec2{a.x >= b.x, a.y >= b.y}; }
inline bvec2 equal(uvec2 a, uvec2 b) { return bvec2{a.x == b.x, a.y == b.y}; }
inline bool all(bvec2 a) { return a.x && a.y; }
inline bool any(bvec2 a) { return a.x || a.y; }

inline uint floatBitsToUint(float x) { return __float_as_uint(x); }
inline float uintBitsToFloat(uint x) { return __uint_as_float(x); }
inline uint64_t doubleBitsToUint64(double x) { return uint64_t(__double_as_longlong(x)); }
inline double uint64BitsToDouble(uint64_t x) { return __longlong_as_double(int64_t(x)); }
inline uint64_t packUint2x32(uvec2 x) { return uint64_t(x.y) << 32 | x.x; }
inline int bitfieldExtract(int x, int first, int bits) { return int(uint(x) << (32 - bits - first)) >> (32 - bits); }
inline void umulExtended(uint a, uint b, uint &high, uint &low) {
    uint64_t product = uint64_t(a) * b;
    high = uint(product >> 32);
    low = uint(product);
}
// An instruction of PTX that converts a number. An emulator has its own macro.
#ifndef CONVERT
#define CONVERT(INSTRUCTION, TO, y, FROM, x) asm(INSTRUCTION " %0, %1;" : TO(y) : FROM(x))
#endif
// Of the lower 16 bits.
inline float unpack_half(uint x) {
    uint16_t bits = uint16_t(x);
    float y;
    CONVERT("cvt.f32.f16", "=f", y, "h", bits);
    return y;
}
// To the nearest, ties to even. `common.glsl` has the others.
#define HAS_TO_F16
inline uint to_f16(float x) {
    uint16_t bits;
    CONVERT("cvt.rn.f16.f32", "=h", bits, "f", x);
    return bits;
}
#if __CUDA_ARCH__ >= 800
#define HAS_TO_BF16
inline uint to_bf16(float x) {
    uint16_t bits;
    CONVERT("cvt.rn.bf16.f32", "=h", bits, "f", x);
    return bits;
}
#endif
inline vec2 unpackHalf2x16(uint x) { return vec2(unpack_half(x), unpack_half(x >> 16)); }

// In C++ the overflow of signed integers is undefined.
inline float plus(float a, float b) { return a + b; }
inline float minus(float a, float b) { return a - b; }
inline float times(float a, float b) { return a * b; }
inline float negative(float a) { return -a; }
inline double plus(double a, double b) { return a + b; }
inline double minus(double a, double b) { return a - b; }
inline double times(double a, double b) { return a * b; }
inline double negative(double a) { return -a; }
inline int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline int64_t minus(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
inline int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
inline int64_t negative(int64_t a) { return minus(int64_t(0), a); }
inline int64_t shifted_left(int64_t a, uint bits) { return int64_t(uint64_t(a) << bits); }
#define PLUS plus
#define MINUS minus
#define TIMES times
#define NEGATIVE negative
#define SHIFTED_LEFT shifted_left

// Under other names, since CUDA has functions of these.
inline float least(float a, float b) { return fminf(a, b); }
inline float greatest(float a, float b) { return fmaxf(a, b); }
inline double least(double a, double b) { return fmin(a, b); }
inline double greatest(double a, double b) { return fmax(a, b); }
inline uint least(uint a, uint b) { return a < b ? a : b; }
inline uint greatest(uint a, uint b) { return a < b ? b : a; }
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t greatest(int64_t a, int64_t b) { return a < b ? b : a; }
inline float magnitude(float x) { return fabsf(x); }
inline double magnitude(double x) { return fabs(x); }
inline int64_t magnitude(int64_t x) { return x < 0 ? NEGATIVE(x) : x; }
inline bool is_nan_(float x) { return x != x; }
inline bool is_infinite(float x) { return fabsf(x) == __uint_as_float(0x7f800000u); }
inline bool is_nan_(double x) { return x != x; }
inline bool is_infinite(double x) { return fabs(x) == uint64BitsToDouble(0x7ff0000000000000ul); }
inline double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }
inline float sign_of(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
inline float mixture(float a, float b, float part) { return a * (1.0f - part) + b * part; }
#define min least
#define max greatest
#define abs magnitude
#define isnan is_nan_
#define isinf is_infinite
#define sign sign_of
#define mix mixture
// CUDA's functions without a suffix are those of doubles.
#ifdef DOUBLE
#define roundEven rint
#else
#define fma fmaf
#define sqrt sqrtf
#define floor floorf
#define ceil ceilf
#define trunc truncf
#define roundEven rintf
#endif
#define atan atan2f

#define MULTIPLY_ADD fmaf

#define gl_LocalInvocationID threadIdx
#define gl_LocalInvocationIndex threadIdx.x
#define gl_WorkGroupID blockIdx
#define gl_WorkGroupSize blockDim
#define gl_NumWorkGroups gridDim
struct GlobalId {
    uint x, y, z;
};
#define gl_GlobalInvocationID (GlobalId{blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z})
#define barrier __syncthreads
// The barrier behind it does that too.
#define memoryBarrierBuffer()

// The specialization constant with this id. A shader may have none, and NVRTC has no empty arrays: one more is at the end.
constexpr uint constants[] = {CONSTANTS 0u};
constexpr uint constant(uint id, uint otherwise) { return id + 1 < sizeof(constants) / sizeof(uint) ? constants[id] : otherwise; }
