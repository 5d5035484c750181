//! Bytes that the host lends, and searching bytes.

use crate::{Error, Result};
use core::ffi::c_void;

/// Returns whether there is a NUL among the bytes.
#[inline]
#[must_use]
pub fn has_nul(bytes: &[u8]) -> bool {
    has_byte(bytes, 0)
}

/// Returns whether `byte` is among the bytes.
#[inline]
#[must_use]
pub fn has_byte(bytes: &[u8], byte: u8) -> bool {
    // An empty slice may have an address that C must not see.
    // SAFETY: `memchr` looks at no more than the bytes of the slice. It is quicker than the search of
    // the standard library, which cannot choose its instructions by the CPU.
    !bytes.is_empty()
        && !unsafe { libc::memchr(bytes.as_ptr().cast(), byte.into(), bytes.len()) }.is_null()
}

/// Converts a size that the host passes. No object in memory is larger than [`isize::MAX`].
///
/// # Errors
/// `INVALID_ARGUMENT` for a larger size.
#[inline]
pub fn host_size(size: u64) -> Result<usize> {
    match isize::try_from(size) {
        Ok(size) => Ok(size.unsigned_abs()),
        Err(_) => Err(too_large(size)),
    }
}

#[cold]
fn too_large(size: u64) -> Error {
    Error::invalid_argument(format!("TensorFlow passed {size} bytes, more than any memory has"))
}

/// Returns the bytes that the host lends, or none if it passes null.
///
/// # Errors
/// `INVALID_ARGUMENT` for more bytes than any memory has.
///
/// # Safety
/// Unless `data` is null, `len` bytes there can be read for `'a`, and nothing writes to them.
pub unsafe fn lent<'a>(data: *const c_void, len: usize) -> Result<&'a [u8]> {
    if data.is_null() {
        return Ok(&[]);
    }
    let len = host_size(len as u64)?;
    // SAFETY: `data` is not null, `len` bytes there stay readable and unwritten for `'a`, and `host_size` has
    // limited `len` to `isize::MAX`.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), len) })
}
