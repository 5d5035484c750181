//! The functions of cuBLAS.

use super::abort;
use super::elements::{Elements, Kind, allows_tf32, tf32};
use super::queue::on_device;
use crate::device::current;
use cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasMath_t, cublasOperation_t,
    cublasStatus_t, cudaDataType, cudaStream_t,
};
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::Mutex;

const SUCCESS: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_SUCCESS;
const INVALID: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE;

/// The state of a handle: its stream.
type Handle = Mutex<usize>;

/// # Safety
/// The caller follows cuBLAS' rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuBLAS' name")]
pub(crate) unsafe extern "C" fn cublasCreate_v2(handle: *mut cublasHandle_t) -> cublasStatus_t {
    let created: Box<Handle> = Box::default();
    // SAFETY: a handle may be written there.
    unsafe { handle.write(Box::into_raw(created).cast()) };
    SUCCESS
}

/// # Safety
/// The caller follows cuBLAS' rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuBLAS' name")]
pub(crate) unsafe extern "C" fn cublasSetStream_v2(
    handle: cublasHandle_t,
    stream: cudaStream_t,
) -> cublasStatus_t {
    // SAFETY: `cublasCreate_v2` made it.
    let of_handle = unsafe { &*handle.cast::<Handle>() };
    *of_handle.lock().unwrap() = stream.addr();
    SUCCESS
}

/// # Safety
/// The caller follows cuBLAS' rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuBLAS' name")]
pub(crate) unsafe extern "C" fn cublasSetMathMode(
    _handle: cublasHandle_t,
    _mode: cublasMath_t,
) -> cublasStatus_t {
    // All products are computed in 32 bits.
    SUCCESS
}

/// A batch of column-major matrices.
#[derive(Clone, Copy)]
struct Matrix {
    elements: Elements,
    /// The number of elements from one column to the next; `step` is that from one matrix to the next.
    pitch: i64,
    step: i64,
    is_transposed: bool,
}

impl Matrix {
    fn index(&self, batch: i64, row: i64, column: i64) -> i64 {
        let (inner, outer) = if self.is_transposed { (column, row) } else { (row, column) };
        batch * self.step + outer * self.pitch + inner
    }

    /// Returns the bytes of a batch, or `None` if the matrices overlap in a way that cuBLAS does not allow.
    fn bytes(&self, count: i64, rows: i64, columns: i64) -> Option<usize> {
        let (inner, outer) = if self.is_transposed { (columns, rows) } else { (rows, columns) };
        if self.pitch < inner.max(1) || self.step < 0 {
            return None;
        }
        if inner == 0 || outer == 0 || count == 0 {
            return Some(0);
        }
        let last = (count - 1) * self.step + (outer - 1) * self.pitch + inner;
        Some(last as usize * self.elements.kind.size())
    }
}

/// Enqueues products of matrices. Supports only sums in float32, and only the scalars 1 and 0.
/// # Safety
/// The caller follows cuBLAS' rules for this function.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "cuBLAS' name")]
pub(crate) unsafe extern "C" fn cublasGemmStridedBatchedEx(
    handle: cublasHandle_t,
    a_op: cublasOperation_t,
    b_op: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    a_kind: cudaDataType,
    a_pitch: c_int,
    a_step: c_longlong,
    b: *const c_void,
    b_kind: cudaDataType,
    b_pitch: c_int,
    b_step: c_longlong,
    beta: *const c_void,
    c: *mut c_void,
    c_kind: cudaDataType,
    c_pitch: c_int,
    c_step: c_longlong,
    count: c_int,
    compute: cublasComputeType_t,
    _algorithm: cublasGemmAlgo_t,
) -> cublasStatus_t {
    // SAFETY: for this type of computation the scalars are floats.
    let scalars = unsafe { (alpha.cast::<f32>().read(), beta.cast::<f32>().read()) };
    let is_tf32 = compute == cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32;
    if is_tf32 && (a_kind != cudaDataType::CUDA_R_32F || !allows_tf32()) {
        abort("a product loses bits");
    }
    if !(is_tf32 || compute == cublasComputeType_t::CUBLAS_COMPUTE_32F) || scalars != (1.0, 0.0) {
        return cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED;
    }
    let matrix = |at: usize, kind, pitch: c_int, step, op| {
        let is_transposed = op != cublasOperation_t::CUBLAS_OP_N;
        let kind = match kind {
            cudaDataType::CUDA_R_32F => Kind::F32,
            cudaDataType::CUDA_R_16F => Kind::F16,
            _ => Kind::Bf16,
        };
        let elements = Elements { at, kind };
        Matrix { elements, pitch: pitch.into(), step, is_transposed }
    };
    let none = cublasOperation_t::CUBLAS_OP_N;
    let a = matrix(a.addr(), a_kind, a_pitch, a_step, a_op);
    let b = matrix(b.addr(), b_kind, b_pitch, b_step, b_op);
    let c = matrix(c.addr(), c_kind, c_pitch, c_step, none);
    let [m, n, k, count] = [m, n, k, count].map(i64::from);
    if [m, n, k, count].iter().any(|&size| size < 0) {
        return INVALID;
    }
    let mut held = Vec::new();
    for (matrix, rows, columns) in [(&a, m, k), (&b, k, n), (&c, m, n)] {
        match matrix.bytes(count, rows, columns) {
            None => return INVALID,
            Some(0) => {}
            Some(bytes) => match on_device(matrix.elements.at as u64, bytes) {
                Ok(block) => held.push(block),
                Err(_) => return INVALID,
            },
        }
    }
    // SAFETY: `cublasCreate_v2` made it.
    let stream = *unsafe { &*handle.cast::<Handle>() }.lock().unwrap();
    let Ok(stream) = current().stream(stream as cudaStream_t) else { return INVALID };
    stream.run(move || {
        for batch in 0..count {
            for column in 0..n {
                for row in 0..m {
                    let term = |at| {
                        let (a_at, b_at) = (a.index(batch, row, at), b.index(batch, at, column));
                        // SAFETY: the matrices have these elements, and their blocks are held.
                        let factors = unsafe { [a.elements.get(a_at), b.elements.get(b_at)] };
                        let [a, b] = if is_tf32 { factors.map(tf32) } else { factors };
                        a * b
                    };
                    let sum = (0..k).map(term).sum();
                    // SAFETY: `c` has this element, its block is held, and no other thread uses it.
                    unsafe { c.elements.set(c.index(batch, row, column), sum) };
                }
            }
        }
        drop(held);
        Ok(())
    });
    SUCCESS
}
