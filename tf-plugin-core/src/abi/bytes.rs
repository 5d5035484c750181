//! Searching bytes.

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
