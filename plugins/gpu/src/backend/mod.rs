//! The GPU, its memory and batches of commands, as safe types, over the drivers of CUDA and Vulkan.

#[expect(unsafe_code, reason = "the contract of recorders")]
mod batch;
#[expect(unsafe_code, reason = "memory of a driver")]
mod buffer;
mod clock;
#[expect(unsafe_code, reason = "calls of CUDA and of NVIDIA's libraries")]
mod cuda;
#[expect(unsafe_code, reason = "the contract of backends")]
mod driver;
mod gpu;
#[expect(unsafe_code, reason = "calls of Vulkan")]
mod vulkan;
mod watchdog;

pub(crate) use batch::{Batch, Staged};
pub(crate) use buffer::{Buffer, BufferSlice};
pub(crate) use clock::Measured;
pub(crate) use cuda::{THREADS, image, program};
pub(crate) use driver::{
    Convolution, ConvolutionKind, CooperativeMatrix, Dispatch, MatMul, Operation, PUSH_BYTES,
    Shader, WindowShape,
};
pub(crate) use gpu::Gpu;
pub(crate) use watchdog::again;
