//! Memory that is passed to or from a plugin: blocks of the plugin's allocator, and buffers of the host.

use crate::violations::Log;
use core::ffi::{CStr, c_char, c_void};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tf_plugin_core::sync::{Mutex, MutexGuard};

pub(in crate::filesystem) type FreeFn = unsafe extern "C" fn(ptr: *mut c_void);

/// The blocks that the host got from a plugin and has not freed.
#[derive(Debug)]
pub(in crate::filesystem) struct Blocks {
    free: FreeFn,
    held: Mutex<BTreeSet<usize>>,
    log: Arc<Log>,
}

impl Blocks {
    pub(super) fn new(free: FreeFn, log: Arc<Log>) -> Self {
        Self { free, held: Mutex::default(), log }
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the host got a block. Null is not counted. If the host already has the block,
    /// that is a violation, and the block must not be freed again: then this returns false.
    pub(super) fn receive<T>(
        &self,
        operation: &'static str,
        subject: &[u8],
        block: *mut T,
    ) -> bool {
        if block.is_null() || self.held().insert(block.expose_provenance()) {
            return true;
        }
        self.log.add(
            operation,
            subject,
            format!("the block {block:p} came twice; TensorFlow would free it twice"),
        );
        false
    }

    /// Frees a block with the plugin's hook, which TensorFlow calls with null too.
    ///
    /// # Safety
    /// `block` must be null, or a block of the plugin's allocator that
    /// [`receive`](Self::receive) was true for and that nothing uses any more.
    pub(super) unsafe fn free<T>(&self, block: *mut T) {
        self.held().remove(&block.addr());
        // SAFETY: `block` is null, or a block of the plugin's allocator that nothing uses any more, and `free`
        // is the plugin's own hook.
        unsafe { (self.free)(block.cast()) };
    }

    /// Frees a block of the plugin, unless the host has it already.
    ///
    /// # Safety
    /// `block` must be null, or a block of the plugin's allocator that is now the host's and that nothing uses any more.
    pub(super) unsafe fn release<T>(&self, operation: &'static str, subject: &[u8], block: *mut T) {
        if self.receive(operation, subject, block) {
            // SAFETY: `receive` was true for the block, which is not used again.
            unsafe { self.free(block) };
        }
    }

    /// Takes ownership of a C string: returns its bytes and frees it. Returns `None` for null.
    ///
    /// # Safety
    /// `string` must be null or a C string from the plugin's allocator that is now the host's.
    pub(super) unsafe fn take_string(
        &self,
        operation: &'static str,
        subject: &[u8],
        string: *mut c_char,
    ) -> Option<Vec<u8>> {
        if string.is_null() {
            return None;
        }
        // SAFETY: `string` is not null, so it is a C string; it is freed once, after the copy.
        unsafe {
            let bytes = CStr::from_ptr(string).to_bytes().to_vec();
            self.release(operation, subject, string);
            Some(bytes)
        }
    }

    /// Returns how many blocks the host holds.
    pub(in crate::filesystem) fn count(&self) -> usize {
        self.held().len()
    }
}

/// How many bytes on each side of a buffer are checked.
const MARGIN: usize = 64;

/// A buffer for a read, filled with a pattern and checked on both sides.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    n: usize,
    seed: u8,
}

impl Buffer {
    /// Creates a buffer, or returns `None` without memory. Buffers of different seeds differ in every byte.
    pub(super) fn new(n: usize, seed: u8) -> Option<Self> {
        let size = n.checked_add(2 * MARGIN)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).ok()?;
        // The pattern repeats, so copying one period is faster than writing byte by byte.
        let period: [u8; 256] = core::array::from_fn(|index| pattern(index, seed));
        while bytes.len() < size {
            let piece = period.len().min(size - bytes.len());
            bytes.extend_from_slice(&period[..piece]);
        }
        Some(Self { bytes, n, seed })
    }

    /// Returns the start of the `n` bytes; null if there are none, as TensorFlow sometimes passes it.
    pub(super) fn as_mut_ptr(&mut self) -> *mut c_char {
        if self.n == 0 {
            return core::ptr::null_mut();
        }
        self.bytes[MARGIN..].as_mut_ptr().cast()
    }

    /// Returns whether the bytes on both sides are unchanged.
    pub(super) fn margins_are_intact(&self) -> bool {
        let is_intact = |range: core::ops::Range<usize>| {
            range.clone().all(|index| self.bytes[index] == pattern(index, self.seed))
        };
        is_intact(0..MARGIN) && is_intact(MARGIN + self.n..self.bytes.len())
    }

    /// Returns the first `len` bytes.
    pub(super) fn content(&self, len: usize) -> &[u8] {
        &self.bytes[MARGIN..MARGIN + len.min(self.n)]
    }
}

/// Returns whether a byte of a buffer with this seed has its initial value.
pub(super) fn is_as_made(index: usize, byte: u8, seed: u8) -> bool {
    byte == pattern(MARGIN + index, seed)
}

fn pattern(index: usize, seed: u8) -> u8 {
    (index.wrapping_mul(167) as u8) ^ seed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_inside_and_outside_are_told_apart() {
        for n in [0, 1, 7, 8, 9, 255, 256, 1000] {
            let mut buffer = Buffer::new(n, 0x5a).expect("memory");
            assert_eq!(buffer.as_mut_ptr().is_null(), n == 0);
            assert!(buffer.margins_are_intact());
            let other = Buffer::new(n, 0xa5).expect("memory");
            assert!(buffer.content(n).iter().zip(other.content(n)).all(|(a, b)| a != b));
            let as_made = |buffer: &Buffer| {
                let content = buffer.content(n).iter().enumerate();
                content.filter(|(index, byte)| is_as_made(*index, **byte, 0x5a)).count()
            };
            assert_eq!((as_made(&buffer), as_made(&other)), (n, 0));
            for index in 0..n {
                buffer.bytes[MARGIN + index] ^= 0x80;
            }
            assert_eq!(as_made(&buffer), 0);
            assert!(buffer.margins_are_intact());
            for outside in [0, MARGIN - 1, MARGIN + n, 2 * MARGIN + n - 1] {
                buffer.bytes[outside] ^= 1;
                assert!(!buffer.margins_are_intact());
                buffer.bytes[outside] ^= 1;
            }
        }
        assert!(Buffer::new(usize::MAX, 0).is_none());
        assert!(Buffer::new(isize::MAX as usize, 0).is_none());
    }
}
