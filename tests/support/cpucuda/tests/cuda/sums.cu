#include "common.h"

// The sum of each block.
struct Shader {
    struct Push {
        uint64_t in, out;
        uint n;
    };
    const Push &push;

    __device__ void main() {
        __shared__ float sums[256];
        uint i = index(), lane = threadIdx.x;
        sums[lane] = i < push.n ? ((const float *)push.in)[i] : 0.0f;
        __syncthreads();
        for (uint half = blockDim.x / 2; half > 0; half /= 2) {
            if (lane < half) sums[lane] += sums[lane + half];
            __syncthreads();
        }
        if (lane == 0) ((float *)push.out)[blockIdx.x] = sums[0];
    }
};

extern "C" __global__ void __launch_bounds__(256) run(const __grid_constant__ Shader::Push push) {
    Shader shader{push};
    shader.main();
}

// Half of the threads end before the barrier.
extern "C" __global__ void half(const __grid_constant__ Shader::Push push) {
    __shared__ float values[256];
    if (threadIdx.x >= blockDim.x / 2) return;
    values[threadIdx.x] = ((const float *)push.in)[index()];
    __syncthreads();
    ((float *)push.out)[index()] = values[blockDim.x / 2 - 1 - threadIdx.x];
}

extern "C" __global__ void diverge(const __grid_constant__ Shader::Push push) {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}
