//! The driver below the crate: the trait [`Backend`], which a plugin implements for an API such as Vulkan, and what the crate
//! makes of it.

#[expect(unsafe_code, reason = "the contract of backends")]
mod batch;
#[expect(unsafe_code, reason = "memory of a driver")]
mod buffer;
mod clock;
#[expect(unsafe_code, reason = "the contract of backends")]
mod erased;
mod gpu;
#[expect(unsafe_code, reason = "the contract of backends")]
mod interface;
mod open;
mod operations;
mod poll;
#[expect(unsafe_code, reason = "the contract of programs")]
mod shader;
mod watchdog;

pub(crate) use batch::{Batch, Staged};
pub(crate) use buffer::{Buffer, BufferSlice};
pub(crate) use clock::Measured;
pub use clock::now;
pub(crate) use erased::{Dispatch, Operation};
pub(crate) use gpu::Gpu;
pub use interface::{
    Allocation, Backend, BackendError, BackendResult, Found, LARGEST_BATCH, MemoryKind, Opened,
    PUSH_BYTES, Span, WORKGROUP,
};
pub use open::{OpenedGpu, open};
pub use operations::{Convolution, ConvolutionKind, CooperativeMatrix, MatMul, WindowShape};
pub use poll::poll;
pub use shader::Shader;
pub(crate) use watchdog::again;
