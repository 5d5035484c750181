//! `fnmatch`, which TensorFlow's default of `get_matching_paths` uses.

use std::ffi::CString;

/// Whether a path matches a pattern, both without NUL.
pub(in crate::filesystem) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (Ok(pattern), Ok(path)) = (CString::new(pattern), CString::new(path)) else {
        return false;
    };
    // SAFETY: two C strings.
    unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), libc::FNM_PATHNAME) == 0 }
}
