//! Host memory that stays valid after a call.

use super::pending_copies::{Pending, dropped};
use core::ptr;
use std::sync::Arc;
use tf_plugin_core::Result;

/// A range of the host's memory, for which the holder of this value alone is responsible.
#[derive(Debug)]
struct Range {
    address: *mut u8,
    len: usize,
    way: &'static Direction,
    /// `None` once completed.
    pending: Option<Arc<Pending>>,
}

/// The direction of a copy, for error texts.
#[derive(Debug)]
struct Direction {
    op: &'static str,
    token: &'static str,
}

static TO_DEVICE: Direction = Direction { op: "memcpy_htod", token: "a `HostSource`" };
static TO_HOST: Direction = Direction { op: "memcpy_dtoh", token: "a `HostTarget`" };

// SAFETY: the memory belongs to no thread, and for as long as this exists TensorFlow neither frees it nor
// writes to it (see `Pending`); shared references only read.
unsafe impl Send for Range {}
// SAFETY: a shared reference to a `Range` only reads memory that nothing writes while it exists (see `Pending`).
unsafe impl Sync for Range {}

impl Range {
    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "{len} bytes from {offset} on are not within the {} bytes of {}",
            self.len,
            self.way.token
        );
        // SAFETY: within the range, as was just checked.
        unsafe { self.address.add(offset) }
    }

    fn complete(&mut self, outcome: Result<()>) {
        if let Some(pending) = self.pending.take() {
            pending.complete(self.way.op, outcome);
        }
    }

    #[inline]
    fn succeed(&mut self) {
        if let Some(pending) = self.pending.take() {
            pending.succeed();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        self.complete(Err(dropped(self.way.token)));
    }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if self.pending.is_some() {
            self.give_up();
        }
    }
}

/// The type of a range for each direction, with the methods that both have.
macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// While this value exists, the memory is valid, and for TensorFlow later work in the stream is not done. So
        /// **complete it**: with [`complete`](Self::complete) if a driver makes the copy. Dropping it fails the copy.
        #[derive(Debug)]
        pub struct $name(Range);

        impl $name {
            /// Returns the size in bytes, which is never 0.
            #[must_use]
            #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
            #[inline]
            pub fn len(&self) -> usize {
                self.0.len
            }

            /// Completes the copy with its outcome, and gives the memory back to TensorFlow.
            #[inline]
            pub fn complete(mut self, outcome: Result<()>) {
                self.0.complete(outcome);
            }
        }
    )*};
}

tokens! {
    /// Host memory to copy from. [`copy_to`](Self::copy_to) copies all of it and completes.
    HostSource;
    /// Host memory to copy to. [`copy_from`](Self::copy_from) fills all of it and completes.
    HostTarget;
}

impl HostSource {
    /// Creates the source of a copy.
    /// # Safety
    /// `len` bytes at `address` can be read until `pending` is complete.
    #[inline]
    pub(super) unsafe fn new(address: *const u8, len: usize, pending: Arc<Pending>) -> Self {
        let address = address.cast_mut();
        Self(Range { address, len, way: &TO_DEVICE, pending: Some(pending) })
    }

    /// Returns the address, for a driver.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.0.address
    }

    /// Copies the bytes at `offset` to `target`.
    ///
    /// # Panics
    /// If they extend beyond the end.
    #[inline]
    pub fn read(&self, offset: usize, target: &mut [u8]) {
        let from = self.0.at(offset, target.len());
        // SAFETY: `at` has checked the range, which can be read while `self` exists; the slice is the
        // caller's own. (`copy` because nothing keeps the two from being neighbours in one buffer.)
        unsafe { ptr::copy(from.cast_const(), target.as_mut_ptr(), target.len()) };
    }

    /// Copies all of the memory to `target` and completes.
    ///
    /// # Panics
    /// If the sizes differ.
    #[inline]
    pub fn copy_to(mut self, target: &mut [u8]) {
        assert!(target.len() == self.len(), "a copy fills all of its target");
        self.read(0, target);
        self.0.succeed();
    }
}

impl HostTarget {
    /// Creates the target of a copy.
    /// # Safety
    /// `len` bytes at `address` can be written, and nothing else uses them, until `pending` is complete.
    #[inline]
    pub(super) unsafe fn new(address: *mut u8, len: usize, pending: Arc<Pending>) -> Self {
        Self(Range { address, len, way: &TO_HOST, pending: Some(pending) })
    }

    /// Returns the address, for a driver.
    #[must_use]
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.address
    }

    /// Writes `source` at `offset`.
    ///
    /// # Panics
    /// If it extends beyond the end.
    #[inline]
    pub fn write(&mut self, offset: usize, source: &[u8]) {
        let to = self.0.at(offset, source.len());
        // SAFETY: `at` has checked the range, which can be written while `self` exists.
        unsafe { ptr::copy(source.as_ptr(), to, source.len()) };
    }

    /// Fills all of the memory from `source` and completes.
    ///
    /// # Panics
    /// If the sizes differ.
    #[inline]
    pub fn copy_from(mut self, source: &[u8]) {
        assert!(source.len() == self.len(), "a copy fills all of its target");
        self.write(0, source);
        self.0.succeed();
    }
}
