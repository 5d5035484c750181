//! A device's own host allocator, which needs `unsafe`.

pub(crate) mod driver;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use se_plugin::{HostAllocator, Result};

/// An allocator that counts its allocations.
#[derive(Debug)]
pub(crate) struct CountingAllocator {
    /// Called before each allocation.
    before: fn() -> Result<()>,
    /// Allocated and not freed.
    live: AtomicUsize,
    /// Allocated so far.
    total: AtomicUsize,
}

impl CountingAllocator {
    pub(crate) const fn new(before: fn() -> Result<()>) -> Self {
        Self { before, live: AtomicUsize::new(0), total: AtomicUsize::new(0) }
    }

    /// Returns the number of allocations that are not freed, and of all so far.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [&self.live, &self.total].map(|count| count.load(Ordering::Acquire))
    }
}

// SAFETY: memory of the C library's, aligned to 64 bytes.
unsafe impl HostAllocator for CountingAllocator {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        (self.before)()?;
        // SAFETY: the function takes any numbers; the size is a multiple of the alignment.
        let memory = unsafe { libc::aligned_alloc(64, bytes.next_multiple_of(64)) };
        self.live.fetch_add(1, Ordering::AcqRel);
        self.total.fetch_add(1, Ordering::AcqRel);
        Ok(NonNull::new(memory.cast()).expect("a few bytes"))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>) {
        // SAFETY: `memory` is from `aligned_alloc` in `allocate`, and freed once.
        unsafe { libc::free(memory.as_ptr().cast()) };
        self.live.fetch_sub(1, Ordering::AcqRel);
    }
}
