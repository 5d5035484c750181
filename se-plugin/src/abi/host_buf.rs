//! Host memory that an author's method may use until it returns.

use core::ffi::c_void;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use tf_plugin_core::__private::boundary::host_size;
use tf_plugin_core::{Error, Result, ensure};

/// Host memory that a method fills before it returns: all of it.
///
/// Its bytes may be uninitialised before, so they can only be written.
///
/// ```
/// use se_plugin::HostBuf;
///
/// let mut memory = [0; 4];
/// HostBuf::from_slice(&mut memory).copy_from(&[1, 2, 3, 4]);
/// assert_eq!(memory, [1, 2, 3, 4]);
/// ```
pub struct HostBuf<'a> {
    /// Stays initialised if it was so when it was borrowed: `write` copies from slices of bytes.
    memory: &'a mut [MaybeUninit<u8>],
}

impl<'a> HostBuf<'a> {
    /// Wraps your own memory, to call [`Device::copy_to_host`](crate::Device::copy_to_host) without TensorFlow.
    #[must_use]
    pub fn from_slice(memory: &'a mut [u8]) -> Self {
        let (address, len) = (memory.as_mut_ptr(), memory.len());
        // SAFETY: the same memory for the same time. Nobody can put anything uninitialised into it: the field is
        // private, and what is written through `as_mut_ptr` is the caller's promise.
        Self { memory: unsafe { core::slice::from_raw_parts_mut(address.cast(), len) } }
    }

    /// Wraps memory of the host.
    /// Fails with `INVALID_ARGUMENT` for a null pointer, and for more bytes than any memory has.
    ///
    /// # Safety
    /// Unless `address` is null, `len` bytes there can be written for `'a`, and nothing else uses them.
    #[inline]
    pub(super) unsafe fn of_host(address: *mut c_void, len: u64) -> Result<Self> {
        ensure!(
            !address.is_null(),
            Error::invalid_argument("TensorFlow passed no memory to copy to")
        );
        let len = host_size(len)?;
        // SAFETY: `address` is not null, `len` bytes there are writable and used by nothing else for `'a`, and
        // `host_size` has limited `len` to `isize::MAX`. A `HostBuf` only writes, so the bytes need not be initialised.
        Ok(Self { memory: unsafe { core::slice::from_raw_parts_mut(address.cast(), len) } })
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns whether there is no byte to write. TensorFlow's copies have at least one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Returns the address, for a driver that writes initialised bytes to it.
    #[must_use]
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    /// Writes `source` at `offset`.
    ///
    /// # Panics
    /// If it extends beyond the end.
    #[inline]
    pub fn write(&mut self, offset: usize, source: &[u8]) {
        let len = self.len();
        let part =
            offset.checked_add(source.len()).and_then(|end| self.memory.get_mut(offset..end));
        let Some(part) = part else { beyond(offset, source.len(), len) };
        // SAFETY: `part` is as long as `source`, and borrowed mutably, so the two do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(source.as_ptr(), part.as_mut_ptr().cast(), source.len())
        };
    }

    /// Fills all of the memory from `source`.
    ///
    /// # Panics
    /// If the sizes differ.
    #[inline]
    pub fn copy_from(mut self, source: &[u8]) {
        assert!(source.len() == self.len(), "a copy fills all of its target");
        self.write(0, source);
    }
}

#[cold]
fn beyond(offset: usize, bytes: usize, len: usize) -> ! {
    panic!("{bytes} bytes from {offset} on are not within the {len} bytes of a `HostBuf`")
}

impl fmt::Debug for HostBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuf").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::__private::boundary::lent;

    #[test]
    fn parts_are_written_where_they_belong() {
        let mut memory = [9; 5];
        let mut buf = HostBuf::from_slice(&mut memory);
        assert_eq!((buf.len(), buf.is_empty()), (5, false));
        buf.write(1, &[1, 2]);
        buf.write(5, &[]);
        buf.write(4, &[3]);
        assert_eq!(memory, [9, 1, 2, 9, 3]);
    }

    #[test]
    fn nothing_is_written_beyond_the_end() {
        for (offset, source) in [(0, &[0; 5][..]), (4, &[0]), (5, &[]), (usize::MAX, &[0, 0])] {
            let mut memory = [7; 4];
            let write = || HostBuf::from_slice(&mut memory).write(offset, source);
            let payload =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).unwrap_err();
            let text = payload.downcast_ref::<String>().unwrap();
            assert!(text.contains("not within the 4 bytes of a `HostBuf`"), "{text}");
            assert_eq!(memory, [7; 4]);
        }
    }

    #[test]
    fn no_host_memory_is_larger_than_an_object() {
        let mut byte = MaybeUninit::<u8>::uninit();
        let address = byte.as_mut_ptr().cast::<c_void>();
        for (size, is_possible) in
            [(1, true), (u64::MAX / 2 + 1, false), (u64::MAX / 2 + 2, false), (u64::MAX, false)]
        {
            assert_eq!(host_size(size).is_ok(), is_possible, "{size}");
            // SAFETY: one byte; larger sizes are refused.
            let (buf, bytes) = unsafe {
                (HostBuf::of_host(address, size), lent(address, usize::try_from(size).unwrap()))
            };
            assert_eq!((buf.is_ok(), bytes.is_ok()), (is_possible, is_possible), "{size}");
        }
        assert_eq!(host_size(isize::MAX as u64).unwrap(), isize::MAX as usize);
        // SAFETY: null is refused, or no bytes.
        unsafe {
            assert!(HostBuf::of_host(ptr::null_mut(), 1).is_err());
            assert!(lent(ptr::null(), usize::MAX).unwrap().is_empty());
        }
    }
}
