//! The allocator's results.

/// Bytes that the process has allocated and not freed, in all arenas of the C library, mappings included.
pub fn bytes_in_use() -> usize {
    // SAFETY: takes no argument and returns by value.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}
