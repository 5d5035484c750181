//! Elements of tensors as bytes.

use core::{ptr, slice};
use tf_op_plugin::{Element, Error, Result};

/// Returns the bytes of elements.
pub(in crate::ops) fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    // SAFETY: an `Element` is plain bytes without padding: its size is that of its `DType`.
    unsafe { slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }.to_vec()
}

/// Returns the elements that bytes are, which need no alignment.
pub(in crate::ops) fn from_bytes<T: Element>(bytes: &[u8]) -> Result<Vec<T>> {
    let mut aligned = vec![0_u128; bytes.len().div_ceil(size_of::<u128>())];
    // SAFETY: `aligned` has at least as many bytes, of which any values are numbers; the slice is its only user.
    let copy = unsafe {
        let start = aligned.as_mut_ptr().cast::<u8>();
        ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
        slice::from_raw_parts(start, bytes.len())
    };
    match T::__cast(copy) {
        Ok(elements) => Ok(elements.to_vec()),
        Err(_) => Err(Error::internal(format!("the bytes are not elements of {}", T::DTYPE))),
    }
}
