//! Memory.

use super::erased::{Memory, Range as MemoryRange};
use super::gpu::Gpu;
use super::interface::MemoryKind;
use se_plugin::{Error, Result};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// TensorFlow divides regions at multiples of this.
const ALIGNMENT: u64 = 256;

/// Memory that nothing else uses. A batch that uses it keeps it alive.
pub(crate) struct Buffer {
    gpu: Arc<Gpu>,
    /// Taken when it is freed; kept for good on a GPU that was lost.
    memory: ManuallyDrop<Memory>,
    /// Bytes before the first that is used, which align its address.
    pad: u64,
    bytes: u64,
    /// Its bytes of the GPU's `total`; 0 for memory of the host.
    reserved: u64,
}

impl Buffer {
    /// Allocates device memory at an aligned address.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough.
    pub(crate) fn local(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        let size = bytes.saturating_add(ALIGNMENT);
        // Before the allocation, so that threads cannot use the same rest.
        let reserve = |used: u64| used.checked_add(size).filter(|used| *used <= gpu.total);
        let reserved = gpu.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        reserved.map_err(|used| {
            Error::resource_exhausted(format!(
                "cannot allocate {bytes} bytes on `{}`: {used} of {} are used; use a smaller batch",
                gpu.name, gpu.total
            ))
        })?;
        let allocated = Self::new(gpu, size, MemoryKind::Local);
        let mut buffer = allocated.inspect_err(|_| {
            gpu.used.fetch_sub(size, Ordering::Relaxed);
        })?;
        buffer.reserved = size;
        buffer.pad = buffer.memory.address.next_multiple_of(ALIGNMENT) - buffer.memory.address;
        buffer.bytes = bytes;
        Ok(buffer)
    }

    /// Allocates memory that the host sees, for copies.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough.
    pub(crate) fn mapped(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        Self::new(gpu, bytes.max(1), MemoryKind::Mapped)
    }

    fn new(gpu: &Arc<Gpu>, bytes: u64, kind: MemoryKind) -> Result<Self> {
        gpu.check_process()?;
        let memory = gpu.driver.allocate(bytes, kind);
        let memory = ManuallyDrop::new(memory.map_err(|failure| gpu.failed(&failure))?);
        Ok(Self { gpu: Arc::clone(gpu), memory, pad: 0, bytes, reserved: 0 })
    }

    /// Returns the device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address + self.pad
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether it is memory of this GPU, and not of another one of the same backend.
    pub(super) fn is_of(&self, gpu: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.gpu, gpu)
    }

    /// Returns a range of it, without a check.
    pub(super) fn part(&self, offset: u64, bytes: u64) -> MemoryRange<'_> {
        MemoryRange { memory: &self.memory, offset: self.pad + offset, bytes }
    }

    /// Returns bytes of a mapped buffer, which no command of a batch copies from or to; `None` outside of it.
    pub(crate) fn host(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        let host = self.memory.host?;
        if range.start > range.end || range.end as u64 > self.bytes {
            return None;
        }
        // SAFETY: `bytes` bytes are mapped at `host` while the buffer lives, the range is within them, and the driver's memory
        // has a value in each. Nothing else reaches this range through Rust, and the GPU is not at it: a batch takes it before
        // it records the copy, or after it has waited for it. The GPU may be at the rest of the buffer.
        Some(unsafe { std::slice::from_raw_parts_mut(host.as_ptr().add(range.start), range.len()) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A GPU that hangs may continue, and use what no batch was seen to be done with.
        if self.gpu.check_process().is_err() || self.gpu.lost().is_some() {
            return;
        }
        self.gpu.used.fetch_sub(self.reserved, Ordering::Relaxed);
        // SAFETY: the memory is taken once, here. A batch that uses the buffer keeps it, so the device is done with it, and
        // nobody else has it.
        unsafe { self.gpu.driver.free(ManuallyDrop::take(&mut self.memory)) };
    }
}

/// A byte in a buffer.
#[derive(Clone)]
pub(crate) struct BufferSlice {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) offset: u64,
}

impl BufferSlice {
    /// Returns the place `bytes` bytes further, without a check.
    pub(crate) fn at(&self, bytes: u64) -> Self {
        Self { buffer: Arc::clone(&self.buffer), offset: self.offset.saturating_add(bytes) }
    }

    /// Returns the `bytes` bytes from here.
    ///
    /// # Errors
    /// `INTERNAL` if the buffer is shorter.
    pub(super) fn range(&self, bytes: u64) -> Result<MemoryRange<'_>> {
        let fits = self.offset.checked_add(bytes).is_some_and(|end| end <= self.buffer.bytes);
        if fits {
            Ok(self.buffer.part(self.offset, bytes))
        } else {
            Err(Error::internal("range outside of its buffer"))
        }
    }
}
