typedef unsigned int uint;
typedef unsigned long long uint64_t;
typedef long long int64_t;

__device__ __forceinline__ uint index() { return blockIdx.x * blockDim.x + threadIdx.x; }
