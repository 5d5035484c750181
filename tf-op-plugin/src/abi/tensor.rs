//! Tensors of the host.

use super::status::{HostApi, Status};
use crate::dtype::DType;
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;
use smallvec::SmallVec;
use tf_fs_sys::{TF_DataType, TF_Tensor, TensorFunctions};
use tf_plugin_core::{Code, Error, Result, ensure};

/// A tensor of the host's, with the results of the most frequent queries.
#[derive(Debug)]
pub struct Tensor {
    raw: NonNull<TF_Tensor>,
    host: &'static TensorFunctions,
    /// The type of the elements.
    pub dtype: DType,
    /// The length of each dimension; most tensors have no more of them.
    pub shape: SmallVec<[i64; 4]>,
    /// The number of elements.
    pub elements: usize,
    /// The size of the elements in bytes.
    pub bytes: usize,
    /// The address of the bytes.
    pub data: *mut u8,
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
    pub unsafe fn adopt(
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
    pub unsafe fn share(
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

    /// Returns the host's tensor, which stays this value's.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_Tensor {
        self.raw.as_ptr()
    }
}

#[cold]
pub(super) fn missing(what: &dyn fmt::Display) -> Error {
    Error::internal(format!("TensorFlow passed no {what}"))
}

#[cold]
fn unknown(dtype: TF_DataType, what: &dyn fmt::Display) -> Error {
    let text = format!("{what} has elements of type {dtype}, which this SDK does not know");
    Error::new(Code::Unimplemented, text)
}

/// Returns the error for a tensor in a variant whose elements are not plain bytes.
#[cold]
pub fn not_plain(dtype: DType) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("a variant holds tensors of {dtype}, whose elements are not plain bytes"),
    )
}

/// An input or an output, for error texts.
#[derive(Debug)]
pub struct Argument(pub &'static str, pub usize);

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

/// The largest number of dimensions of TensorFlow's tensors.
const MAX_RANK: usize = 254;

/// Returns the number of elements of a shape that a kernel requests, or an error for one on which TensorFlow
/// aborts the process: one with too many dimensions, or whose product exceeds an `i64` when it is multiplied
/// from the first dimension on. A 0 prevents that only for the dimensions after it.
#[inline]
pub(crate) fn elements_of(shape: &[i64]) -> Result<usize> {
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

/// Returns the number of dimensions of a shape, if a tensor can have that shape: the host aborts on others.
pub fn rank_of(shape: &[i64]) -> Result<c_int> {
    elements_of(shape)?;
    c_int::try_from(shape.len()).map_err(Error::invalid_argument)
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
