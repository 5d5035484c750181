//! Where the content of a mapped file is.

use core::marker::PhantomData;

/// The content of a [`ReadOnlyMemoryRegion`](crate::ReadOnlyMemoryRegion): an address and a length
/// for TensorFlow. Create it from a slice with `into()`.
///
/// It is not a slice, because the memory of a [`MappedRegion`](crate::MappedRegion) may change while
/// TensorFlow reads it, which no Rust reference allows.
#[derive(Clone, Copy, Debug)]
pub struct RegionContent<'a> {
    start: *const u8,
    len: usize,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> RegionContent<'a> {
    /// Creates the content from memory that others may change.
    ///
    /// # Safety
    /// `len` bytes from `start` on must stay readable for `'a`.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn shared(start: *const u8, len: usize) -> Self {
        Self { start, len, borrowed: PhantomData }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is 0. TensorFlow does not map empty files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Returns a copy of the bytes as they are now.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len];
        // SAFETY: `len` bytes are readable for `'a`, and the fresh memory overlaps nothing. Whoever
        // may change them is outside of this program; a copy of raw memory takes what it finds.
        unsafe { core::ptr::copy_nonoverlapping(self.start, copy.as_mut_ptr(), self.len) };
        copy
    }
}

impl<'a> From<&'a [u8]> for RegionContent<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), borrowed: PhantomData }
    }
}
