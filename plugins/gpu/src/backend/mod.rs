//! The GPU, its memory and batches of commands, as safe types, over the drivers of CUDA and Vulkan.

mod batch;
mod buffer;
mod clock;
mod cuda;
mod driver;
mod gpu;
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
pub(crate) use gpu::{Backend, Gpu};
pub(crate) use watchdog::again;
