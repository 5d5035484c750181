//! Allocators of host memory, for TensorFlow.

use core::ffi::c_void;
use core::ptr::NonNull;
use tf_plugin_core::{Error, Result};

/// Alignment of host memory in bytes; TensorFlow needs 64.
const ALIGNMENT: usize = 256;

/// An allocator of host memory that a device can copy fast from and to, such as pinned memory.
///
/// # Safety
/// [`allocate`](Self::allocate) returns memory of the requested size, aligned to 64 bytes. Until it is passed
/// to [`deallocate`](Self::deallocate), it can be read and written, and nothing else uses it. All allocators
/// that one device returns can free each other's memory.
pub unsafe trait HostAllocator: Send + Sync {
    /// Allocates `bytes` bytes, never 0.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough left.
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` is from [`allocate`](Self::allocate) of an allocator of the same device, and freed once.
    unsafe fn deallocate(&self, memory: NonNull<u8>);
}

/// The allocator of ordinary memory.
pub(super) struct SystemAllocator;

// SAFETY: `posix_memalign` keeps the promises.
unsafe impl HostAllocator for SystemAllocator {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let mut memory: *mut c_void = core::ptr::null_mut();
        // SAFETY: the alignment is a power of two and a multiple of a pointer's size.
        let failed = unsafe { libc::posix_memalign(&raw mut memory, ALIGNMENT, bytes) };
        let memory = if failed == 0 { NonNull::new(memory.cast()) } else { None };
        memory.ok_or_else(|| {
            Error::resource_exhausted(format!("no {bytes} bytes of host memory are left"))
        })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>) {
        // SAFETY: `memory` is from `posix_memalign` in `allocate`, and is freed once.
        unsafe { libc::free(memory.as_ptr().cast()) };
    }
}
