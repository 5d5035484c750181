//! `/GPU:0`: a GPU with Vulkan 1.3 or CUDA, as a TensorFlow device.
//!
//! It was tested on one GPU, an NVIDIA H100, with CUDA and with Vulkan, and otherwise on the CPU: on Mesa's
//! lavapipe and on a replacement for CUDA's driver. The README lists the kernels, how they run and how to add one.
//!
//! | Environment variable | Meaning |
//! |---|---|
//! | `RUST_GPU_BACKEND` | `cuda` or `vulkan`: uses no other. By default CUDA, and Vulkan where CUDA has no GPU or no NVRTC |
//! | `RUST_GPU_DEVICE_NAME` | part of the name of the GPU to use, such as `radeon`; without it, the first GPU that is not software |
//! | `RUST_GPU_MEMORY_MIB` | the most device memory to use, in MiB; all by default |
//! | `RUST_GPU_TIMEOUT_S` | after so many seconds without a finished batch of work the GPU counts as hung, such as `120` or `0.5`. 300 by default; 0 means no limit, the default for software such as lavapipe, where one matrix product can take minutes |
//! | `RUST_GPU_TYPE` | the type of the device. Without it, `GPU`; on a TensorFlow that was built for CUDA or ROCm, which has kernels of its own for that type, `RUST_GPU`. Beside another plugin of the type `GPU`, name one |
//! | `RUST_GPU_FUSE` | `0`: elementwise ops that follow each other in a graph are not fused |
//! | `RUST_GPU_COOPERATIVE_MATRICES` | `0`: products of float16 are computed without the matrix units of a Vulkan GPU |
//! | `RUST_GPU_NVIDIA_LIBRARIES` | `0`: CUDA computes without cuBLAS and cuDNN |
//! | `RUST_GPU_CACHE` | the directory for kernels that were compiled for CUDA, or `0` for none. By default `~/.cache/tensorflow-rust-gpu`. Drivers of Vulkan have caches of their own |
//! | `RUST_GPU_COUNTERS` | a file to which the GPU's name and how often each kernel ran are written, whenever a tensor is copied to the host |
//!
//! `backend` is the layer above the drivers; the other modules are independent of Vulkan and CUDA.
//! `kernels` enqueue `shaders` by `launch`; `backend::cuda::glsl` has their source for CUDA. `fusion` is the graph pass.

mod address_map;
mod backend;
mod cache;
mod device;
mod fusion;
mod health;
mod kernels;
mod launch;
mod platform;
mod queue;
mod settings;
mod stream;

pub use device::GpuDevice;
#[doc(hidden)]
pub use kernels::bench;
pub use platform::GpuPlatform;
pub use stream::{GpuEvent, GpuStream};
