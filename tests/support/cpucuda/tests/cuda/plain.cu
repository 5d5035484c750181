#include "common.h"

#ifndef SCALE
#define SCALE 1
#endif

struct Push {
    uint64_t in, out;
    uint n;
};

__device__ float of(float x) {
    float y = fmaf(x, x, floorf(x)) + atan2f(x, 1.0f) + truncf(x) + rintf(x) + fabsf(-x);
    return isnan(y) || isinf(y) ? 0.0f : SCALE * fmaxf(sqrtf(fminf(y, 1e30f)), __uint_as_float(0x3f800000u));
}

extern "C" __global__ void run(const __grid_constant__ Push push) {
    uint i = index();
    if (i < push.n) ((float *)push.out)[i] = of(((const float *)push.in)[i]);
}

// Where each thread is: blocks and threads in three dimensions.
extern "C" __global__ void places(const __grid_constant__ Push push) {
    uint block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    uint thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    uint i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    if (i < push.n) ((float *)push.out)[i] = (float)i;
}

// Takes long, and then copies.
extern "C" __global__ void slow(const __grid_constant__ Push push) {
    uint x = 1;
    for (volatile uint i = 0; i < 100000000u; i = i + 1) x = __umulhi(x, 0xd2511f53u) + 1u;
    if (x == 0) return;
    for (uint i = 0; i < push.n; i++) ((float *)push.out)[i] = ((const float *)push.in)[i];
}

extern "C" __global__ void of_many(char a, const float *in, double b, float *out, uint n) {
    uint i = index();
    if (i < n) out[i] = in[i] + (float)a + (float)b;
}

__global__ void of_cpp(const __grid_constant__ Push push) {}
