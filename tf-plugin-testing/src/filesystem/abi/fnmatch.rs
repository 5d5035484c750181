//! The matching of patterns.

use std::ffi::CString;

/// Returns whether a path matches a pattern by `fnmatch`, as in TensorFlow's default. With a NUL in either it does not.
pub(in crate::filesystem) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (Ok(pattern), Ok(path)) = (CString::new(pattern), CString::new(path)) else {
        return false;
    };
    // SAFETY: two C strings.
    unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), libc::FNM_PATHNAME) == 0 }
}
