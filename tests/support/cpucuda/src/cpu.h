// What lets g++ compile a program for NVRTC, and runs its kernels on the CPU. It is included before the program. No
// header of the system is: programs for NVRTC define `uint64_t` and the like themselves.
#pragma once

#define CPU_CUDA 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 9

// `program.rs` finds kernels by this attribute, which does nothing in a library.
#define __global__ __attribute__((__externally_visible__))
#define __device__
#define __host__
#define __constant__
#define __managed__
// A thread runs one block at a time.
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __syncthreads() cpu_cuda::wait_for_block(__FILE__, __LINE__)
#define __trap() cpu_cuda::fail("__trap()")

// Instructions of PTX that convert numbers, for programs that write them by this macro instead of `asm`.
#define CONVERT(instruction, to, y, from, x) cpu_cuda::convert(instruction, y, x)

typedef decltype(sizeof(0)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;

#define CPU_CUDA_VECTORS(name, type) \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; }; \
    struct name##3 { type x, y, z; }; \
    struct alignas(sizeof(type) > 4 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
CPU_CUDA_VECTORS(char, signed char)
CPU_CUDA_VECTORS(uchar, unsigned char)
CPU_CUDA_VECTORS(short, short)
CPU_CUDA_VECTORS(ushort, unsigned short)
CPU_CUDA_VECTORS(int, int)
CPU_CUDA_VECTORS(uint, unsigned)
CPU_CUDA_VECTORS(longlong, long long)
CPU_CUDA_VECTORS(ulonglong, unsigned long long)
CPU_CUDA_VECTORS(float, float)
CPU_CUDA_VECTORS(double, double)

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

// Fibers: each thread of a block that waits has a stack. A fiber runs one thread after the other until one of them waits, so a
// kernel without barriers has one fiber.
namespace cpu_cuda {

inline bool is_equal(const char *a, const char *b) {
    for (; *a == *b; a++, b++)
        if (!*a) return true;
    return false;
}
inline void convert(const char *instruction, float &y, unsigned short x) {
    if (!is_equal(instruction, "cvt.f32.f16")) __builtin_trap();
    int exponent = x >> 10 & 31, digits = x & 1023;
    double size = exponent == 31 ? (digits ? __builtin_nan("") : __builtin_inf())
        : __builtin_ldexp(exponent ? 1024 + digits : digits, (exponent ? exponent : 1) - 25);
    y = float(x >> 15 ? -size : size);
}
// To the nearest, ties to even. PTX has one NaN.
inline void convert(const char *instruction, unsigned short &y, float x) {
    if (x != x) {
        y = 0x7fff;
    } else if (is_equal(instruction, "cvt.rn.f16.f32")) {
        float size = __builtin_fabsf(x);
        int exponent = size < 6.103515625e-5f ? -14 : __builtin_ilogbf(size);
        unsigned bits = size >= 65520.0f ? 0x7c00 : unsigned((exponent + 14) * 1024 + __builtin_rint(__builtin_ldexp(size, 10 - exponent)));
        y = (unsigned short)((__builtin_signbit(x) ? 0x8000 : 0) | bits);
    } else if (is_equal(instruction, "cvt.rn.bf16.f32")) {
        unsigned bits;
        __builtin_memcpy(&bits, &x, sizeof bits);
        y = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    } else {
        __builtin_trap();
    }
}

constexpr unsigned MOST = 1024;
constexpr size_t STACK = 64 << 10;

// As in `memory.rs`: before each stack is a guard of the same size. The first `ready` may be written.
struct Stacks { char *base; unsigned ready; };

// As in `library.rs`.
struct Launch { uint3 grid, block; void **arguments; Stacks *stacks; };

struct Fiber { void *stack; uint3 thread; const char *file; int line; };

struct Scheduler {
    Launch *launch;
    void (*thread)(void **);
    void *stack;
    const char *error;
    unsigned next, count, started, idle_count, waiting_count, current;
    Fiber fibers[MOST];
    unsigned idle[MOST], waiting[MOST], turn[MOST];
};

static thread_local Scheduler *scheduler;

extern "C" int mprotect(void *, size_t, int) noexcept;
// Saves the registers on this stack, and goes on with the other.
extern "C" __attribute__((visibility("hidden"))) void cpu_cuda_switch(void **from, void *to);

#if defined(__x86_64__)
constexpr unsigned SAVED = 6, RETURN = 6;
asm(R"(
.text
.type cpu_cuda_switch, @function
cpu_cuda_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cpu_cuda_switch, . - cpu_cuda_switch
)");
#elif defined(__aarch64__)
constexpr unsigned SAVED = 20, RETURN = 11;
asm(R"(
.text
.type cpu_cuda_switch, %function
cpu_cuda_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size cpu_cuda_switch, . - cpu_cuda_switch
)");
#else
#error "kernels run on x86_64 and aarch64"
#endif

static void fiber() {
    Scheduler *s = scheduler;
    unsigned me = s->current;
    for (;;) {
        while (s->next < s->count) {
            unsigned i = s->next++;
            threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
            s->thread(s->launch->arguments);
        }
        s->idle[s->idle_count++] = me;
        cpu_cuda_switch(&s->fibers[me].stack, s->stack);
    }
}

static unsigned start(Scheduler *s) {
    unsigned me = s->started++;
    Stacks *stacks = s->launch->stacks;
    char *low = stacks->base + (2 * me + 1) * STACK;
    if (me >= stacks->ready) {
        if (mprotect(low, STACK, 3) != 0) __builtin_trap();
        stacks->ready = me + 1;
    }
    // What the switch loads: registers, among them the address to return to. x86_64 calls with a stack that is off by 8.
    // Stacks begin at different offsets: at one offset all would share a few lines of the cache.
    void **top = (void **)(low + STACK - me % 64 * 320) - 2 - (SAVED + SAVED % 2);
    top[RETURN] = (void *)fiber;
    s->fibers[me].stack = top;
    return me;
}

static void resume(Scheduler *s, unsigned fiber) {
    s->current = fiber;
    cpu_cuda_switch(&s->stack, s->fibers[fiber].stack);
}

__attribute__((noinline)) static void wait_for_block(const char *file, int line) {
    Scheduler *s = scheduler;
    unsigned me = s->current;
    Fiber *f = &s->fibers[me];
    f->thread = threadIdx;
    f->file = file;
    f->line = line;
    s->waiting[s->waiting_count++] = me;
    cpu_cuda_switch(&f->stack, s->stack);
    threadIdx = f->thread;
}

// Ends the launch with an error; what is on the stacks is left.
__attribute__((noinline)) static void fail(const char *error) {
    Scheduler *s = scheduler;
    s->error = error;
    cpu_cuda_switch(&s->fibers[s->current].stack, s->stack);
}

// Runs a block. Threads that have ended do not take part in barriers.
static void block(Scheduler *s) {
    s->next = 0;
    while (s->next < s->count && !s->error) resume(s, s->idle_count ? s->idle[--s->idle_count] : start(s));
    while (s->waiting_count && !s->error) {
        unsigned n = s->waiting_count;
        s->waiting_count = 0;
        Fiber *first = &s->fibers[s->waiting[0]];
        for (unsigned i = 0; i < n; i++) {
            s->turn[i] = s->waiting[i];
            Fiber *f = &s->fibers[s->turn[i]];
            if (f->line != first->line || (f->file != first->file && __builtin_strcmp(f->file, first->file) != 0))
                s->error = "threads of a block wait at different __syncthreads()";
        }
        for (unsigned i = 0; i < n && !s->error; i++) resume(s, s->turn[i]);
    }
}

static const char *run(Launch *launch, void (*thread)(void **)) {
    Scheduler s;
    s.launch = launch;
    s.thread = thread;
    s.error = nullptr;
    s.started = s.idle_count = s.waiting_count = 0;
    s.count = launch->block.x * launch->block.y * launch->block.z;
    scheduler = &s;
    gridDim = launch->grid;
    blockDim = launch->block;
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x && !s.error; x++) {
                blockIdx = {x, y, z};
                block(&s);
            }
    return s.error;
}

template <class... A> struct Call {
    Call(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};

// Braces evaluate from left to right.
template <class... A> static void call(void (*kernel)(A...), void **arguments) {
    Call<A...>{kernel, *(A *)*arguments++...};
}

template <class... A> static size_t sizes(void (*)(A...), size_t *to) {
    size_t all[] = {sizeof(A)..., 0};
    for (size_t i = 0; to && i < sizeof...(A); i++) to[i] = all[i];
    return sizeof...(A);
}

} // namespace cpu_cuda

// Functions of C, for `float` and `double`.
#define CPU_CUDA_1(name) \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    static inline float name(float x) { return name##f(x); }
#define CPU_CUDA_2(name) \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    static inline float name(float x, float y) { return name##f(x, y); }
CPU_CUDA_1(sqrt) CPU_CUDA_1(cbrt) CPU_CUDA_1(fabs)
CPU_CUDA_1(floor) CPU_CUDA_1(ceil) CPU_CUDA_1(trunc) CPU_CUDA_1(rint) CPU_CUDA_1(round) CPU_CUDA_1(nearbyint)
CPU_CUDA_1(exp) CPU_CUDA_1(exp2) CPU_CUDA_1(exp10) CPU_CUDA_1(expm1)
CPU_CUDA_1(log) CPU_CUDA_1(log2) CPU_CUDA_1(log10) CPU_CUDA_1(log1p)
CPU_CUDA_1(sin) CPU_CUDA_1(cos) CPU_CUDA_1(tan) CPU_CUDA_1(asin) CPU_CUDA_1(acos) CPU_CUDA_1(atan)
CPU_CUDA_1(sinh) CPU_CUDA_1(cosh) CPU_CUDA_1(tanh) CPU_CUDA_1(asinh) CPU_CUDA_1(acosh) CPU_CUDA_1(atanh)
CPU_CUDA_1(erf) CPU_CUDA_1(erfc) CPU_CUDA_1(lgamma) CPU_CUDA_1(tgamma)
CPU_CUDA_2(atan2) CPU_CUDA_2(pow) CPU_CUDA_2(fmod) CPU_CUDA_2(remainder) CPU_CUDA_2(hypot)
CPU_CUDA_2(fmax) CPU_CUDA_2(fmin) CPU_CUDA_2(fdim) CPU_CUDA_2(copysign) CPU_CUDA_2(nextafter)

#define CPU_CUDA_TYPES(type, suffix) \
    extern "C" type fma##suffix(type, type, type) noexcept; \
    extern "C" type ldexp##suffix(type, int) noexcept; \
    extern "C" type frexp##suffix(type, int *) noexcept; \
    extern "C" type modf##suffix(type, type *) noexcept; \
    static inline bool isnan(type x) { return __builtin_isnan(x); } \
    static inline bool isinf(type x) { return __builtin_isinf(x); } \
    static inline bool isfinite(type x) { return __builtin_isfinite(x); } \
    static inline bool signbit(type x) { return __builtin_signbit(x); } \
    static inline type abs(type x) { return x < 0 ? -x : x == 0 ? type(0) : x; } \
    static inline type rsqrt##suffix(type x) { return 1 / __builtin_sqrt##suffix(x); }
CPU_CUDA_TYPES(float, f)
CPU_CUDA_TYPES(double, )
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }

#define CPU_CUDA_LIMITS(type) \
    static inline type min(type x, type y) { return y < x ? y : x; } \
    static inline type max(type x, type y) { return x < y ? y : x; }
CPU_CUDA_LIMITS(int)
CPU_CUDA_LIMITS(unsigned)
CPU_CUDA_LIMITS(long)
CPU_CUDA_LIMITS(unsigned long)
CPU_CUDA_LIMITS(long long)
CPU_CUDA_LIMITS(unsigned long long)
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }

extern "C" void *memcpy(void *, const void *, size_t) noexcept;
extern "C" void *memset(void *, int, size_t) noexcept;
extern "C" int printf(const char *, ...);

namespace cpu_cuda {
template <class To, class From> static inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "sizes");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace cpu_cuda

static inline unsigned __float_as_uint(float x) { return cpu_cuda::bits<unsigned>(x); }
static inline int __float_as_int(float x) { return cpu_cuda::bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return cpu_cuda::bits<float>(x); }
static inline float __int_as_float(int x) { return cpu_cuda::bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cpu_cuda::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cpu_cuda::bits<double>(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
static inline int __mulhi(int x, int y) { return (long long)x * y >> 32; }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned __int128)x * y >> 64;
}
static inline long long __mul64hi(long long x, long long y) { return (__int128)x * y >> 64; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
// The compiler fuses nothing.
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
template <class T> static inline T __ldg(const T *x) { return *x; }

// Streams run at the same time.
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#define CPU_CUDA_ATOMIC(type) \
    static inline type atomicCAS(type *at, type expected, type value) { \
        __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return expected; \
    } \
    static inline type atomicAdd(type *at, type x) { return __atomic_fetch_add(at, x, __ATOMIC_RELAXED); } \
    static inline type atomicAnd(type *at, type x) { return __atomic_fetch_and(at, x, __ATOMIC_RELAXED); } \
    static inline type atomicOr(type *at, type x) { return __atomic_fetch_or(at, x, __ATOMIC_RELAXED); } \
    static inline type atomicXor(type *at, type x) { return __atomic_fetch_xor(at, x, __ATOMIC_RELAXED); } \
    static inline type atomicExch(type *at, type x) { return __atomic_exchange_n(at, x, __ATOMIC_RELAXED); } \
    static inline type atomicMax(type *at, type x) { \
        type old = *at; \
        while (old < x && !__atomic_compare_exchange_n(at, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} \
        return old; \
    } \
    static inline type atomicMin(type *at, type x) { \
        type old = *at; \
        while (x < old && !__atomic_compare_exchange_n(at, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} \
        return old; \
    }
CPU_CUDA_ATOMIC(int)
CPU_CUDA_ATOMIC(unsigned)
CPU_CUDA_ATOMIC(unsigned long long)
static inline float atomicAdd(float *at, float x) {
    unsigned old = *(unsigned *)at;
    while (!__atomic_compare_exchange_n((unsigned *)at, &old, __float_as_uint(__uint_as_float(old) + x), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return __uint_as_float(old);
}
