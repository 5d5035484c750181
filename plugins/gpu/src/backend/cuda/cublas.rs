//! Products of matrices with cuBLAS, if it is installed, in place of the shader `matmul`.

use super::broken;
use super::dlopen::CUBLAS;
use super::library_ops::pushed;
use crate::backend::driver::{BackendResult, Shader};
use cudarc::cublas::result::{self, CublasError};
use cudarc::cublas::sys;
use cudarc::driver::sys::CUstream;
use std::sync::{Mutex, Once, PoisonError};

/// The shader that it replaces; its constants and numbers are in `shaders/matmul.comp`.
const SHADER: &str = "matmul";

/// The most products at a time; more are wrong in old versions: PyTorch's issues 25241 and 45724.
const MOST_COUNT: i32 = 65_535;

/// cuBLAS, opened for a GPU.
pub(super) struct Cublas {
    handle: Mutex<sys::cublasHandle_t>,
    /// Logs only the first failure that is not the GPU's.
    pub(super) failed: Once,
}

// SAFETY: the handle is an address that any thread may use, one at a time.
unsafe impl Send for Cublas {}
// SAFETY: the lock is around all uses of it.
unsafe impl Sync for Cublas {}

/// The product that the constants of the shader select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    kind: sys::cudaDataType,
    is_transposed: [bool; 2],
}

/// The arguments that are pushed to the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operands {
    a: u64,
    b: u64,
    out: u64,
    rows: i32,
    inner: i32,
    columns: i32,
    count: i32,
    a_step: i64,
    b_step: i64,
}

impl Product {
    /// Returns the product of a shader with these constants, if it is that shader.
    pub(super) fn of(shader: &Shader, constants: &[u32]) -> Option<Self> {
        let [_, kind, a, b, ..] = *constants else { return None };
        if shader.name != SHADER {
            return None;
        }
        let kind = match kind {
            0 => sys::cudaDataType::CUDA_R_32F,
            1 => sys::cudaDataType::CUDA_R_16F,
            2 => sys::cudaDataType::CUDA_R_16BF,
            _ => return None,
        };
        Some(Self { kind, is_transposed: [a != 0, b != 0] })
    }
}

impl Operands {
    /// Reads the pushed arguments, if cuBLAS supports their sizes: it counts with 31 bits, and old
    /// versions compute at most [`MOST_COUNT`] at a time and do not write sums of nothing.
    fn of(push: &[u8]) -> Option<Self> {
        let ([a, b, out], [rows, inner, columns, count, a_step, b_step]) = pushed(push)?;
        let size = |number| i32::try_from(number).ok();
        let (inner, count) = (size(inner)?, size(count)?);
        if inner == 0 || count > MOST_COUNT {
            return None;
        }
        Some(Self {
            a,
            b,
            out,
            rows: size(rows)?,
            inner,
            columns: size(columns)?,
            count,
            a_step: a_step.into(),
            b_step: b_step.into(),
        })
    }
}

impl Cublas {
    /// Opens cuBLAS for the context of this thread, if it is installed.
    pub(super) fn open(stream: CUstream) -> BackendResult<Option<Self>> {
        if !CUBLAS.find() {
            return Ok(None);
        }
        let what = |error: CublasError| broken("open cuBLAS", error.to_string());
        let handle = result::create_handle().map_err(what)?;
        // SAFETY: both are of this context.
        unsafe { result::set_stream(handle, stream.cast()) }.map_err(what)?;
        // Sums of 16-bit floats are summed in 32 bits.
        let mode = sys::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the handle is of this context.
        unsafe { sys::cublasSetMathMode(handle, mode) }.result().map_err(what)?;
        Ok(Some(Self { handle: Mutex::new(handle), failed: Once::new() }))
    }

    /// Enqueues products into the stream, if cuBLAS supports them. Returns whether it does.
    ///
    /// # Safety
    /// The context is that of this thread; the matrices are in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(&self, product: Product, push: &[u8]) -> Result<bool, String> {
        use sys::cublasStatus_t as Status;
        let Some(operands) = Operands::of(push) else { return Ok(false) };
        let Product { kind, is_transposed: [ta, tb] } = product;
        let Operands { a, b, out, rows, inner, columns, count, a_step, b_step } = operands;
        let transposed = |is| match is {
            true => sys::cublasOperation_t::CUBLAS_OP_T,
            false => sys::cublasOperation_t::CUBLAS_OP_N,
        };
        let (one, zero) = (1.0_f32, 0.0_f32);
        // cuBLAS stores columns first: it sees the transposed matrices, and out' = b' a'.
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is this context's; of the matrices it is as the caller says, and they have these sizes.
        let enqueued = unsafe {
            result::gemm_strided_batched_ex(
                *handle,
                transposed(tb),
                transposed(ta),
                columns,
                rows,
                inner,
                (&raw const one).cast(),
                b as *const _,
                kind,
                if tb { inner } else { columns }.max(1),
                b_step,
                a as *const _,
                kind,
                if ta { rows } else { inner }.max(1),
                a_step,
                (&raw const zero).cast(),
                out as *mut _,
                kind,
                columns.max(1),
                i64::from(rows) * i64::from(columns),
                count,
                // Not `FAST_TF32`: a float keeps all its bits, as on the CPU.
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        match enqueued {
            Ok(()) => Ok(true),
            // The shader may support it on this GPU.
            Err(CublasError(
                Status::CUBLAS_STATUS_NOT_SUPPORTED
                | Status::CUBLAS_STATUS_ARCH_MISMATCH
                | Status::CUBLAS_STATUS_INVALID_VALUE
                | Status::CUBLAS_STATUS_ALLOC_FAILED,
            )) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_shader() {
        let shader = |name| Shader { name, code: &[] };
        let product = Product::of(&shader("matmul"), &[2, 1, 0, 1, 0, 1]);
        let kind = sys::cudaDataType::CUDA_R_16F;
        assert_eq!(product, Some(Product { kind, is_transposed: [false, true] }));
        assert_eq!(Product::of(&shader("matmul"), &[2, 3, 0, 1, 0, 1]), None);
        assert_eq!(Product::of(&shader("convolve"), &[2, 1, 0, 1]), None);
    }

    #[test]
    fn operands_are_those_that_are_pushed() {
        let addresses = [256_u64, 512, 1024].map(u64::to_ne_bytes).concat();
        let push =
            |numbers: [u32; 6]| [&addresses[..], &numbers.map(u32::to_ne_bytes).concat()].concat();
        let expected = Operands {
            a: 256,
            b: 512,
            out: 1024,
            rows: 2,
            inner: 3,
            columns: 4,
            count: 5,
            a_step: 6,
            b_step: 7,
        };
        assert_eq!(Operands::of(&push([2, 3, 4, 5, 6, 7])), Some(expected));
        assert_eq!(Operands::of(&push([u32::MAX, 3, 4, 5, 6, 7])), None);
        assert_eq!(Operands::of(&push([2, 0, 4, 5, 6, 7])), None);
        assert_eq!(Operands::of(&push([2, 3, 4, 65_536, 6, 7])), None);
        assert_eq!(Operands::of(&addresses), None);
    }
}
