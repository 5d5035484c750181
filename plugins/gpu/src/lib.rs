//! `/GPU:0`: a GPU with CUDA, Vulkan 1.3 or OpenCL, as a TensorFlow device.
//!
//! It was tested on one GPU, an NVIDIA H100, with CUDA and with Vulkan, and otherwise on the CPU: on Mesa's
//! lavapipe, on a replacement for CUDA's driver, and on PoCL, which is OpenCL. The README lists the kernels, how they run and how to add one.
//!
//! | Environment variable | Meaning |
//! |---|---|
//! | `RUST_GPU_BACKEND` | `cuda`, `vulkan` or `opencl`: uses no other. By default CUDA, Vulkan where CUDA has no GPU or no NVRTC, and OpenCL where Vulkan has no GPU |
//! | `RUST_GPU_DEVICE_NAME` | part of the name of the GPUs to use, such as `radeon`; without it, all GPUs of the backend that are not software |
//! | `RUST_GPU_MEMORY_MIB` | the most memory of each GPU to use, in MiB; all by default |
//! | `RUST_GPU_TIMEOUT_S` | after so many seconds without a finished batch of work the GPU counts as hung, such as `120` or `0.5`. 300 by default; 0 means no limit, the default for software such as lavapipe, where one matrix product can take minutes |
//! | `RUST_GPU_TYPE` | the type of the device. Without it, `GPU`; on a TensorFlow that was built for CUDA or ROCm, which has kernels of its own for that type, `RUST_GPU`. Beside another plugin of the type `GPU`, name one |
//! | `RUST_GPU_FUSE` | `0`: graphs stay as they are: nothing is fused, merged or replaced |
//! | `RUST_GPU_FUSE_ATTENTION` | `1`: attention is one op for all types; `0`: for none |
//! | `RUST_GPU_COOPERATIVE_MATRICES` | `0`: products of float16 are computed without the matrix units of a Vulkan GPU |
//! | `RUST_GPU_FLOAT64` | `0`: ops compute with float64 on the CPU, as they do without the setting if a GPU or its driver cannot |
//! | `RUST_GPU_NVIDIA_LIBRARIES` | `0`: CUDA computes without cuBLAS and cuDNN |
//! | `RUST_GPU_TF32` | `1`: cuBLAS and cuDNN may multiply float32 as TF32 |
//! | `RUST_GPU_CUDNN_AUTOTUNE` | `0`: cuDNN uses the first algorithm that it suggests; by default the fastest one, found by trial |
//! | `RUST_GPU_CACHE` | the directory for kernels that were compiled for CUDA or OpenCL, or `0` for none. By default `~/.cache/tensorflow-rust-gpu`. Drivers of Vulkan have caches of their own |
//! | `RUST_GPU_COUNTERS` | a file to which the GPU's name, how often each kernel ran, and the bytes of its tensors are written, whenever a tensor is copied to the host |
//!
//! The engine and the ops are those of `se-plugin-gpu`. This crate has its backends for `vulkan`, `cuda` and `opencl`, and
//! the choice among them in `platform`.

#[expect(unsafe_code, reason = "calls of CUDA and of NVIDIA's libraries")]
mod cuda;
#[expect(unsafe_code, reason = "calls of OpenCL")]
mod opencl;
mod platform;
mod settings;
#[expect(unsafe_code, reason = "calls of Vulkan")]
mod vulkan;

pub use platform::GpuPlatform;
pub use se_plugin_gpu::{GpuDevice, GpuEvent, GpuStream};

/// The launches of kernels without TensorFlow, only for `benches/device`. This may change at any time.
#[doc(hidden)]
pub mod bench {
    pub use se_plugin_gpu::backend::WORKGROUP as THREADS;
    pub use se_plugin_gpu::bench::*;

    /// Compiles a program with its constants to PTX for GPUs of this capability, with a zero at its end. The entry is `run`.
    ///
    /// # Errors
    /// `INTERNAL` if it cannot be translated or compiled.
    pub fn ptx(program: &Program, capability: (i32, i32)) -> se_plugin::Result<Vec<u8>> {
        let source = program.shader().cuda(&program.constants)?;
        crate::cuda::image(&source, capability).map_err(se_plugin::Error::internal)
    }
}
