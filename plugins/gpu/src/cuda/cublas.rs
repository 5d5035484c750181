//! Products of matrices with cuBLAS, if it is installed, in place of the shader `matmul`.

use super::broken;
use super::dlopen::CUBLAS;
use cudarc::cublas::result::{self, CublasError};
use cudarc::cublas::sys;
use cudarc::driver::sys::CUstream;
use se_plugin::kernel::DType;
use se_plugin_gpu::backend::{BackendResult, MatMul};
use std::sync::{Mutex, Once, PoisonError};

/// The most products at a time; more are wrong in old versions: PyTorch's issues 25241 and 45724.
const MOST_COUNT: i32 = 65_535;

/// cuBLAS, opened for a GPU.
pub(super) struct Cublas {
    handle: Mutex<sys::cublasHandle_t>,
    /// Whether float32 may be multiplied as TF32.
    tf32: bool,
    /// Logs only the first failure that is not the GPU's.
    pub(super) failed: Once,
}

// SAFETY: the handle is an address that any thread may use, one at a time.
unsafe impl Send for Cublas {}
// SAFETY: the lock is around all uses of it.
unsafe impl Sync for Cublas {}

impl Cublas {
    /// Opens cuBLAS for the context of this thread, if it is installed.
    pub(super) fn open(stream: CUstream, tf32: bool) -> BackendResult<Option<Self>> {
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
        Ok(Some(Self { handle: Mutex::new(handle), tf32, failed: Once::new() }))
    }

    /// Enqueues products into the stream, if cuBLAS supports them. Returns whether it does.
    ///
    /// # Safety
    /// The context is that of this thread; the matrices are in memory of the GPU, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        product: &MatMul,
        [a, b, out]: [u64; 3],
    ) -> Result<bool, String> {
        use sys::cublasStatus_t as Status;
        let MatMul { dtype, transpose: [ta, tb], strides: [a_stride, b_stride], .. } = *product;
        let (Some(kind), Some(sizes)) = (data_type(dtype), sizes(product)) else {
            return Ok(false);
        };
        let [rows, inner, columns, count] = sizes;
        let transposed = |is| match is {
            true => sys::cublasOperation_t::CUBLAS_OP_T,
            false => sys::cublasOperation_t::CUBLAS_OP_N,
        };
        // Without `FAST_TF32` a float keeps all its bits, as on the CPU.
        let compute = match self.tf32 && dtype == DType::Float32 {
            true => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            false => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
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
                b_stride as i64,
                a as *const _,
                kind,
                if ta { rows } else { inner }.max(1),
                a_stride as i64,
                (&raw const zero).cast(),
                out as *mut _,
                kind,
                columns.max(1),
                i64::from(rows) * i64::from(columns),
                count,
                compute,
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

/// Returns whether cuBLAS computes such products.
pub(super) fn supports(product: &MatMul) -> bool {
    data_type(product.dtype).is_some() && sizes(product).is_some()
}

fn data_type(dtype: DType) -> Option<sys::cudaDataType> {
    match dtype {
        DType::Float32 => Some(sys::cudaDataType::CUDA_R_32F),
        DType::Float16 => Some(sys::cudaDataType::CUDA_R_16F),
        DType::Bfloat16 => Some(sys::cudaDataType::CUDA_R_16BF),
        _ => None,
    }
}

/// Returns rows, elements of a sum, columns and the number of products, if cuBLAS supports them: it counts with 31 bits,
/// and old versions compute at most [`MOST_COUNT`] at a time and do not write sums of nothing.
fn sizes(product: &MatMul) -> Option<[i32; 4]> {
    let size = |size| i32::try_from(size).ok();
    let (inner, count) = (size(product.inner)?, size(product.batch)?);
    let is_supported = inner > 0 && count <= MOST_COUNT;
    is_supported.then_some([size(product.rows)?, inner, size(product.columns)?, count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cublas_gets_sizes_that_all_versions_support() {
        let product = MatMul {
            dtype: DType::Float16,
            transpose: [false, true],
            rows: 2,
            inner: 3,
            columns: 4,
            batch: 5,
            strides: [6, 7],
        };
        assert_eq!(sizes(&product), Some([2, 3, 4, 5]));
        assert_eq!(sizes(&MatMul { rows: 1 << 31, ..product }), None);
        assert_eq!(sizes(&MatMul { inner: 0, ..product }), None);
        assert_eq!(sizes(&MatMul { batch: 65_536, ..product }), None);
        assert_eq!(data_type(DType::Int64), None);
    }
}
