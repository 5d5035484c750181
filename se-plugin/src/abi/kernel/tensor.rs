//! Tensors of the host.

use super::status::{HostApi, Status};
use crate::dtype::DType;
use crate::memory::DevicePtr;
use core::fmt;
use core::ptr::NonNull;
use smallvec::SmallVec;
use std::sync::Arc;
use tf_fs_sys::{TF_DataType, TF_Tensor, TensorFunctions};
use tf_plugin_core::{Code, Error, Result, ensure};

/// A tensor of the host's, with the results of the most frequent queries.
pub(super) struct Tensor {
    raw: NonNull<TF_Tensor>,
    host: &'static TensorFunctions,
    pub(super) dtype: DType,
    /// Most tensors have no more dimensions.
    pub(super) shape: SmallVec<[i64; 4]>,
    pub(super) elements: usize,
    pub(super) bytes: usize,
    /// The address of the bytes.
    pub(super) data: *mut u8,
}

// SAFETY: the host counts references atomically and lets any thread delete them; all else here only reads
// what was noted when the value was made.
unsafe impl Send for Tensor {}
// SAFETY: a shared reference only reads fields that were set when the value was created.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes over a tensor that a function of the host's has returned.
    ///
    /// # Safety
    /// `raw` is null, or a tensor that nothing else deletes.
    #[inline]
    pub(super) unsafe fn adopt(
        raw: *mut TF_Tensor,
        host: &HostApi,
        what: &dyn fmt::Display,
    ) -> Result<Self> {
        let host = host.tensors;
        let Some(raw) = NonNull::new(raw) else { return Err(missing(what)) };
        let at = raw.as_ptr();
        // SAFETY: a tensor that lives.
        unsafe {
            let dtype = (host.TF_TensorType)(at);
            let Some(dtype) = DType::from_raw(dtype) else {
                (host.TF_DeleteTensor)(at);
                return Err(unknown(dtype, what));
            };
            let rank = (host.TF_NumDims)(at);
            let shape: SmallVec<_> = (0..rank).map(|index| (host.TF_Dim)(at, index)).collect();
            let elements = elements_of(&shape).unwrap_or(0);
            let (bytes, data) = ((host.TF_TensorByteSize)(at), (host.TF_TensorData)(at).cast());
            Ok(Self { raw, host, dtype, shape, elements, bytes, data })
        }
    }

    /// Creates another tensor over the memory of one that stays the host's.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if its elements are not plain bytes, which the host would not share; those of the host.
    ///
    /// # Safety
    /// `raw` is null, or a tensor that lives for the call.
    pub(super) unsafe fn share(
        raw: *mut TF_Tensor,
        host: &HostApi,
        status: &Status,
        what: &dyn fmt::Display,
    ) -> Result<Self> {
        if raw.is_null() {
            return Err(missing(what));
        }
        let tensors = host.tensors;
        // SAFETY: `raw` lives. `to` is a new tensor, nobody else's, which becomes one over the memory of `raw`; there are as
        // many dimensions as are said, and one of length 0 in a tensor without bytes.
        unsafe {
            let dtype = (tensors.TF_TensorType)(raw);
            let known = DType::from_raw(dtype).ok_or_else(|| unknown(dtype, what))?;
            ensure!(known.size().is_some(), not_plain(known));
            let rank = (tensors.TF_NumDims)(raw);
            let dims: Vec<i64> = (0..rank).map(|index| (tensors.TF_Dim)(raw, index)).collect();
            let to = (tensors.TF_AllocateTensor)(dtype, &0, 1, 0);
            if to.is_null() {
                return Err(missing(what));
            }
            let bitcast = tensors.TF_TensorBitcastFrom;
            bitcast(raw, dtype, to, dims.as_ptr(), rank, status.as_ptr());
            let shared = Self::adopt(to, host, what);
            status.check().and(shared)
        }
    }

    pub(super) fn as_ptr(&self) -> *mut TF_Tensor {
        self.raw.as_ptr()
    }

    /// Returns the address of the elements of a tensor in device memory, or `None` if there are none.
    #[inline]
    pub(super) fn device_ptr(&self) -> Result<Option<DevicePtr>> {
        match self.bytes {
            0 => Ok(None),
            _ => match DevicePtr::new(self.data.addr() as u64) {
                Some(ptr) if !ptr.is_refused() => Ok(Some(ptr)),
                ptr => Err(no_memory(ptr)),
            },
        }
    }
}

#[cold]
fn missing(what: &dyn fmt::Display) -> Error {
    Error::internal(format!("TensorFlow passed no {what}"))
}

#[cold]
fn unknown(dtype: TF_DataType, what: &dyn fmt::Display) -> Error {
    let text = format!("{what} has elements of type {dtype}, which this SDK does not know");
    Error::new(Code::Unimplemented, text)
}

/// Returns the error for a tensor in a variant whose elements are not plain bytes.
#[cold]
pub(super) fn not_plain(dtype: DType) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("a variant holds tensors of {dtype}, whose elements are not plain bytes"),
    )
}

#[cold]
fn no_memory(ptr: Option<DevicePtr>) -> Error {
    match ptr {
        Some(_) => Error::resource_exhausted("the memory of the device is used up"),
        None => Error::internal("TensorFlow passed a tensor without memory"),
    }
}

/// An input or an output, for error texts.
pub(super) struct Argument(pub(super) &'static str, pub(super) usize);

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: this value alone deletes the tensor.
        unsafe { (self.host.TF_DeleteTensor)(self.as_ptr()) }
    }
}

/// A tensor in device memory.
///
/// TensorFlow counts the references to its memory: while this value or a clone exists, the memory is not
/// reused. A kernel need not keep it until its work is done, since TensorFlow gives the memory only to later work of
/// the same stream (see [`Platform::USE_BFC_ALLOCATOR`](crate::Platform::USE_BFC_ALLOCATOR) for when it does not).
#[derive(Clone)]
pub struct DeviceTensor {
    pub(super) tensor: Arc<Tensor>,
    ptr: Option<DevicePtr>,
}

impl DeviceTensor {
    #[inline]
    pub(super) fn new(tensor: Tensor) -> Result<Self> {
        let ptr = tensor.device_ptr()?;
        Ok(Self { tensor: Arc::new(tensor), ptr })
    }

    /// Returns the type of the elements.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape
    }

    /// Returns the number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tensor.elements
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.tensor.bytes as u64
    }

    /// Returns the address of the elements, row by row; `None` if there are none.
    #[must_use]
    #[inline]
    pub fn ptr(&self) -> Option<DevicePtr> {
        self.ptr
    }
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTensor({} {:?} at {:?})", self.dtype(), self.shape(), self.ptr)
    }
}

/// The largest number of dimensions of TensorFlow's tensors.
const MAX_RANK: usize = 254;

/// Returns the number of elements of a shape that a kernel requests, or an error for one on which TensorFlow
/// aborts the process: one with too many dimensions, or whose product exceeds an `i64` when it is multiplied
/// from the first dimension on. A 0 prevents that only for the dimensions after it.
#[inline]
pub(super) fn elements_of(shape: &[i64]) -> Result<usize> {
    let mut product = 1_i64;
    for &dim in shape {
        match product.checked_mul(dim) {
            Some(next) if dim >= 0 => product = next,
            _ => return Err(no_such_shape(shape)),
        }
    }
    match usize::try_from(product) {
        Ok(elements) if shape.len() <= MAX_RANK => Ok(elements),
        _ => Err(no_such_shape(shape)),
    }
}

#[cold]
fn no_such_shape(shape: &[i64]) -> Error {
    Error::invalid_argument(match shape.len() {
        ..=MAX_RANK => format!("no tensor has the shape {shape:?}; check the inputs"),
        rank => format!("no tensor has {rank} dimensions: at most {MAX_RANK}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_a_number_of_elements() {
        assert_eq!(elements_of(&[]).unwrap(), 1);
        assert_eq!(elements_of(&[2, 3]).unwrap(), 6);
        assert_eq!(elements_of(&[0, i64::MAX, i64::MAX]).unwrap(), 0);
        assert_eq!(elements_of(&[i64::MAX]).unwrap(), i64::MAX as usize);
        assert_eq!(elements_of(&[1; 254]).unwrap(), 1);
        for bad in [
            &[-1_i64][..],
            &[i64::MAX, i64::MAX],
            &[0, -1],
            &[i64::MAX, i64::MAX, -1, 0],
            // TensorFlow multiplies from the first dimension on, and aborts.
            &[i64::MAX, i64::MAX, 0],
            &[1 << 32, 1 << 31],
            &[1; 255],
        ] {
            assert!(elements_of(bad).is_err(), "{bad:?}");
        }
    }
}
