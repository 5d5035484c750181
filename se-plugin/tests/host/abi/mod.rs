//! What only `unsafe` can express: host memory of a device's own.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use se_plugin::{HostAllocator, Result};
use std::alloc::{Layout, alloc, dealloc};

/// Memory that knows how much of it there is.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Asked before each allocation.
    before: fn() -> Result<()>,
    /// Allocated and not freed.
    live: AtomicUsize,
    /// Allocated so far.
    total: AtomicUsize,
}

impl Counted {
    pub(crate) const fn new(before: fn() -> Result<()>) -> Self {
        Self { before, live: AtomicUsize::new(0), total: AtomicUsize::new(0) }
    }

    /// How many allocations there are, and how many there were.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [&self.live, &self.total].map(|count| count.load(Ordering::Acquire))
    }
}

/// Room for the size, in front of the memory; it keeps the alignment.
const HEAD: usize = 64;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes + HEAD, HEAD).expect("a size of a test")
}

// SAFETY: memory of the global allocator, aligned to 64 bytes, with its size in front of it.
unsafe impl HostAllocator for Counted {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        (self.before)()?;
        // SAFETY: the layout is not empty; the size goes into the head.
        let memory = unsafe {
            let head = alloc(layout(bytes));
            assert!(!head.is_null(), "a few bytes");
            head.cast::<usize>().write(bytes);
            NonNull::new_unchecked(head.add(HEAD))
        };
        self.live.fetch_add(1, Ordering::AcqRel);
        self.total.fetch_add(1, Ordering::AcqRel);
        Ok(memory)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>) {
        // SAFETY: `memory` is from `allocate`, which put the size `HEAD` bytes in front of it.
        unsafe {
            let head = memory.as_ptr().sub(HEAD);
            dealloc(head, layout(head.cast::<usize>().read()));
        }
        self.live.fetch_sub(1, Ordering::AcqRel);
    }
}
