//! Matrix products by NVIDIA's own libraries.

use super::cuda::Cuda;
use crate::contestant::Contestant as _;
use anyhow::{Result, anyhow, bail};
use cudarc::cublas::{result as cublas, sys as cublas_sys};
use cudarc::cublaslt::{result as cublaslt, sys as cublaslt_sys};
use std::fmt::Debug;

/// The bytes of workspace that cuBLASLt may use, as in its samples.
const WORKSPACE: usize = 32 << 20;
/// The same number, as an attribute.
static WORKSPACE_BYTES: usize = WORKSPACE;

/// Square matrices on a GPU, in their own tensors: 0 and 1 are the factors, 2 the product, 3 a workspace.
pub(crate) struct Blas {
    cuda: Cuda,
    handle: cublas_sys::cublasHandle_t,
    lt: cublaslt_sys::cublasLtHandle_t,
    size: usize,
    is_half: bool,
    plan: Plan,
}

/// The method by which cuBLASLt computes the product.
struct Plan {
    product: cublaslt_sys::cublasLtMatmulDesc_t,
    matrix: cublaslt_sys::cublasLtMatrixLayout_t,
    heuristic: cublaslt_sys::cublasLtMatmulHeuristicResult_t,
}

fn text(error: impl Debug) -> anyhow::Error {
    anyhow!("cuBLAS: {error:?}")
}

impl Blas {
    /// Opens the GPU with this name, for matrices of `size` rows and columns, of 16- or 32-bit floats.
    ///
    /// # Errors
    /// Says why cuBLAS is missing.
    pub(crate) fn open(name: &str, size: usize, is_half: bool) -> Result<Self> {
        let mut cuda = Cuda::open(name)?;
        // SAFETY: NVIDIA's libraries may be loaded by any process.
        if !unsafe { cublas_sys::is_culib_present() && cublaslt_sys::is_culib_present() } {
            bail!("cannot load libcublas and libcublasLt of CUDA 12 or 13");
        }
        let bytes = size * size * if is_half { 2 } else { 4 };
        for _ in 0..3 {
            let tensor = cuda.allocate(bytes)?;
            cuda.write(tensor, &vec![0; bytes])?;
        }
        cuda.allocate(WORKSPACE)?;
        let handle = cublas::create_handle().map_err(text)?;
        // SAFETY: handle and stream live.
        unsafe { cublas::set_stream(handle, cuda.stream.cast()) }.map_err(text)?;
        let lt = cublaslt::create_handle().map_err(text)?;
        let (float, half) =
            (cublaslt_sys::cudaDataType::CUDA_R_32F, cublaslt_sys::cudaDataType::CUDA_R_16F);
        let compute = cublaslt_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let product = cublaslt::create_matmul_desc(compute, float).map_err(text)?;
        let side = size as u64;
        let element = if is_half { half } else { float };
        let matrix =
            cublaslt::create_matrix_layout(element, side, side, size as i64).map_err(text)?;
        let preference = cublaslt::create_matmul_pref().map_err(text)?;
        let attribute = cublaslt_sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        // SAFETY: the attribute is of this type, and all that is passed lives.
        let heuristic = unsafe {
            let bytes = (&raw const WORKSPACE_BYTES).cast();
            cublaslt::set_matmul_pref_attribute(preference, attribute, bytes, size_of::<usize>())
                .map_err(text)?;
            let [a, b, c, d] = [matrix; 4];
            cublaslt::get_matmul_algo_heuristic(lt, product, a, b, c, d, preference)
        };
        let plan = Plan { product, matrix, heuristic: heuristic.map_err(text)? };
        Ok(Self { cuda, handle, lt, size, is_half, plan })
    }

    /// Copies the elements of the factors to the GPU.
    pub(crate) fn write(&mut self, factors: [&[u8]; 2]) -> Result<()> {
        self.cuda.write(0, factors[0])?;
        self.cuda.write(1, factors[1])
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.cuda.read(bytes, 2)
    }

    /// Computes the product `times` times, with cuBLAS or with cuBLASLt.
    pub(crate) fn multiply(&mut self, is_lt: bool, times: usize) -> Result<()> {
        let address = |tensor| self.cuda.tensor(tensor, 0);
        let (a, b, out, workspace) = (address(0)?, address(1)?, address(2)?, address(3)?);
        let (one, zero, size) = (1.0_f32, 0.0_f32, self.size as i32);
        let [one, zero] = [&raw const one, &raw const zero].map(|number| number.cast());
        let element = match self.is_half {
            true => cublas_sys::cudaDataType::CUDA_R_16F,
            false => cublas_sys::cudaDataType::CUDA_R_32F,
        };
        let as_is = cublas_sys::cublasOperation_t::CUBLAS_OP_N;
        let compute = cublas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let algorithm = cublas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        for _ in 0..times {
            // Both expect column-major matrices. With row-major ones, they compute the transposed product from the
            // transposed factors, in the other order.
            if is_lt {
                let Plan { product, matrix, heuristic } = &self.plan;
                // SAFETY: what was created lives, as do the tensors until `wait`; they are as large as the layout says.
                unsafe {
                    cublaslt::matmul(
                        self.lt,
                        *product,
                        one,
                        zero,
                        b as _,
                        *matrix,
                        a as _,
                        *matrix,
                        out as _,
                        *matrix,
                        out as _,
                        *matrix,
                        &raw const heuristic.algo,
                        workspace as _,
                        WORKSPACE,
                        self.cuda.stream.cast(),
                    )
                }
                .map_err(text)?;
            } else {
                // SAFETY: the handle lives; the three matrices have `size` rows and columns each, and `one` and `zero` are numbers here.
                unsafe {
                    cublas::gemm_ex(
                        self.handle,
                        as_is,
                        as_is,
                        size,
                        size,
                        size,
                        one,
                        b as _,
                        element,
                        size,
                        a as _,
                        element,
                        size,
                        zero,
                        out as _,
                        element,
                        size,
                        compute,
                        algorithm,
                    )
                }
                .map_err(text)?;
            }
        }
        self.cuda.wait()
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        self.cuda.clear();
        // SAFETY: `multiply` waits for the GPU; nothing uses them later. There is nothing to do about an error.
        let _ = unsafe { cublas::destroy_handle(self.handle) };
        // SAFETY: `multiply` waits for the GPU; nothing uses this handle later.
        let _ = unsafe { cublaslt::destroy_handle(self.lt) };
    }
}
