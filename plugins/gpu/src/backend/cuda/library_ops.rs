//! Computations of NVIDIA's libraries that replace shaders.

use super::Device;
use super::cublas::Product;
use super::cudnn::Convolution;
use crate::backend::driver::{BackendResult, Shader};
use cudarc::driver::DriverError;
use cudarc::driver::sys::{CUresult, cuStreamQuery};

/// The computation of a library that replaces a shader with its constants.
#[derive(Clone, Copy)]
pub(super) enum Substitute {
    Product(Product),
    Convolution(Convolution),
}

impl Substitute {
    pub(super) fn of(shader: &Shader, constants: &[u32]) -> Option<Self> {
        let product = || Product::of(shader, constants).map(Self::Product);
        product().or_else(|| Convolution::of(shader, constants).map(Self::Convolution))
    }
}

impl Device {
    /// Computes what the shader would, if a library can. Returns whether it does.
    ///
    /// # Safety
    /// The context is that of this thread; the tensors are in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn compute(
        &self,
        substitute: Substitute,
        push: &[u8],
    ) -> BackendResult<bool> {
        let (library, failed, what, computed) = match substitute {
            Substitute::Product(product) => {
                let Some(cublas) = &self.cublas else { return Ok(false) };
                // SAFETY: the context is that of this thread, and the matrices live until they are computed.
                ("cuBLAS", &cublas.failed, "multiply matrices", unsafe {
                    cublas.enqueue(product, push)
                })
            }
            Substitute::Convolution(convolution) => {
                let Some(cudnn) = &self.cudnn else { return Ok(false) };
                // SAFETY: the context is that of this thread, and the tensors live until they are computed.
                ("cuDNN", &cudnn.failed, "convolve", unsafe { cudnn.enqueue(convolution, push) })
            }
        };
        let Err(cause) = computed else { return Ok(computed.unwrap_or_default()) };
        // The error of a library does not show that the GPU failed before.
        // SAFETY: the stream is this context's.
        match unsafe { cuStreamQuery(self.stream) } {
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => {
                failed.call_once(|| warn(library, what, &cause));
                Ok(false)
            }
            lost => Err(super::failed(what, DriverError(lost))),
        }
    }
}

/// Logs that a shader computes what a library cannot.
pub(super) fn warn(library: &str, what: &str, cause: &str) {
    log::warn!("RUST_GPU uses its own kernels: {library} cannot {what}: {cause}");
}

/// Splits what is pushed to a shader into addresses and the numbers behind them.
pub(super) fn pushed<const A: usize, const N: usize>(push: &[u8]) -> Option<([u64; A], [u32; N])> {
    let (addresses, numbers) = push.split_at_checked(8 * A)?;
    let numbers = numbers.get(..4 * N)?;
    let (mut all, mut rest) = ([0; A], [0; N]);
    for (address, bytes) in all.iter_mut().zip(addresses.chunks_exact(8)) {
        *address = u64::from_ne_bytes(bytes.try_into().ok()?);
    }
    for (number, bytes) in rest.iter_mut().zip(numbers.chunks_exact(4)) {
        *number = u32::from_ne_bytes(bytes.try_into().ok()?);
    }
    Some((all, rest))
}
