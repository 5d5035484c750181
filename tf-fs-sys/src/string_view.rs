//! The string type of `tensorflow/c/c_api.h`.

use core::ffi::c_char;

/// A string that the host lends: neither copied nor NUL-terminated.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_StringView {
    /// The bytes; may be null if `len` is 0.
    pub data: *const c_char,
    /// Number of bytes.
    pub len: usize,
}
