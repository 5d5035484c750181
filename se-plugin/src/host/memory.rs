//! Device memory on the host.

use super::allocator::Allocator;
use super::range::DeviceRange;
use crate::abi::host::borrow_table::{Borrow, BorrowTable};
use crate::abi::host_buf::HostBuf;
use crate::device::{AllocatorStats, MemoryUsage};
use crate::memory::DevicePtr;
use crate::sync::{ForkMutex, lock, lock_across_forks};
use core::ops::Range;
use std::sync::{Arc, Mutex, Weak};
use tf_plugin_core::{Error, Result};

/// Host memory that acts as device memory.
///
/// It is mapped twice. TensorFlow gets addresses at which **nothing can be read or written**, as on a real
/// device: a program that accesses device memory directly crashes. The device's tasks use the
/// other mapping, as slices, under the rules of Rust's references: if two tasks use one range at the same
/// time and one of them writes, that is an error and not a race.
///
/// Clones share the memory. It is freed when the last one is dropped.
///
/// The system provides a page when it is first written. If it then has no memory left, the process ends by
/// `SIGBUS` or by the system's out-of-memory killer, as with any memory of a system that promises more than
/// it has (overcommit).
#[derive(Clone, Debug)]
pub struct HostMemory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    borrows: Arc<BorrowTable>,
    /// In a fork it may be locked forever, so each caller first checks that this process is not one.
    allocator: Mutex<Allocator>,
}

/// The memories of this plugin, for copies between devices. A fork creates its own.
static MEMORIES: ForkMutex<Vec<Weak<Shared>>> = ForkMutex::new(Vec::new());

impl HostMemory {
    /// Creates a memory of `bytes` bytes, none of which uses physical memory before it is written.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for less than 256 bytes or more than there are addresses for; the error of the
    /// system if it refuses.
    pub fn new(bytes: u64) -> Result<Self> {
        Self::with(bytes, true)
    }

    /// Creates a memory as [`new`](Self::new) does, but at addresses that the host can read and write: for
    /// comparison with a device that allows this. Accesses by the host are not detected.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn unguarded(bytes: u64) -> Result<Self> {
        Self::with(bytes, false)
    }

    fn with(bytes: u64, guarded: bool) -> Result<Self> {
        let allocator = Allocator::new(bytes);
        let len = usize::try_from(allocator.len).ok();
        let len = len.filter(|&len| len > 0 && isize::try_from(len).is_ok()).ok_or_else(|| {
            Error::invalid_argument(format!("a device cannot have {bytes} bytes of memory"))
        })?;
        let borrows = Arc::new(BorrowTable::new(len, guarded)?);
        let shared = Arc::new(Shared { borrows, allocator: Mutex::new(allocator) });
        let mut memories = lock_across_forks(&MEMORIES);
        memories.retain(|memory| memory.strong_count() > 0);
        memories.push(Arc::downgrade(&shared));
        Ok(Self { shared })
    }

    /// Allocates `bytes` at a multiple of 256, in the first gap that is large enough.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no such gap; `INVALID_ARGUMENT` for 0 bytes; `FAILED_PRECONDITION` in a forked
    /// process.
    pub fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        if bytes == 0 {
            return Err(Error::invalid_argument("an allocation has at least one byte"));
        }
        self.check_process()?;
        let mut allocator = lock(&self.shared.allocator);
        let offset = allocator.allocate(bytes).ok_or_else(|| {
            let (used, all) = (allocator.in_use, allocator.len);
            Error::resource_exhausted(format!(
                "no gap of {bytes} bytes is left: {used} of {all} bytes are in use"
            ))
        })?;
        drop(allocator);
        DevicePtr::new(self.shared.borrows.mapping.view() + offset)
            .ok_or_else(|| Error::internal("memory is not at address 0"))
    }

    /// Frees memory that [`allocate`](Self::allocate) has returned. Work that still uses it fails.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if nothing was allocated there; `FAILED_PRECONDITION` in a forked process.
    pub fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.check_process()?;
        let freed = lock(&self.shared.allocator).free(self.offset(memory));
        freed.ok_or_else(|| not_allocated(memory))
    }

    /// Checks that this process has the memory.
    /// Fails with `FAILED_PRECONDITION` in a forked process.
    pub(super) fn check_process(&self) -> Result<()> {
        self.shared.borrows.mapping.check_process()
    }

    /// Returns whether an allocation starts there.
    pub(super) fn is_allocated(&self, memory: DevicePtr) -> bool {
        lock(&self.shared.allocator).is_allocated(self.offset(memory))
    }

    /// Returns the free and the total memory. Both are 0 in a forked process, which does not have the memory.
    #[must_use]
    pub fn usage(&self) -> MemoryUsage {
        if self.check_process().is_err() {
            return MemoryUsage::default();
        }
        let allocator = lock(&self.shared.allocator);
        MemoryUsage { free: allocator.len - allocator.in_use, total: allocator.len }
    }

    /// Returns the statistics of the allocations so far. They are 0 in a forked process.
    #[must_use]
    pub fn stats(&self) -> AllocatorStats {
        if self.check_process().is_err() {
            return AllocatorStats::default();
        }
        lock(&self.shared.allocator).stats()
    }

    /// Copies to the memory before it returns.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the range is not within an allocation, `INTERNAL` if a task uses it.
    pub fn write(&self, op: &'static str, target: DevicePtr, source: &[u8]) -> Result<()> {
        let target = DeviceRange::new(target, source.len() as u64);
        self.access(op, &[], &[target], |_, writes| {
            writes[0].copy_from_slice(source);
            Ok(())
        })
    }

    /// Copies from the memory before it returns.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the range is not within an allocation, `INTERNAL` if a task writes to it.
    pub fn read(&self, op: &'static str, target: &mut [u8], source: DevicePtr) -> Result<()> {
        self.read_into(op, HostBuf::from_slice(target), source)
    }

    /// Copies from the memory as [`read`](Self::read) does, to memory that may be uninitialised.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_into(
        &self,
        op: &'static str,
        target: HostBuf<'_>,
        source: DevicePtr,
    ) -> Result<()> {
        let source = DeviceRange::new(source, target.len() as u64);
        self.access(op, &[source], &[], |reads, _| {
            target.copy_from(reads[0]);
            Ok(())
        })
    }

    /// Copies within the memory, or between it and another one of this plugin, before it returns.
    ///
    /// # Errors
    /// As for [`read`](Self::read) and [`write`](Self::write), and `INVALID_ARGUMENT` if the ranges
    /// overlap.
    pub fn copy(
        &self,
        op: &'static str,
        target: DevicePtr,
        source: DevicePtr,
        bytes: u64,
    ) -> Result<()> {
        self.check_process()?;
        let (to, from) = (self.owner(target), self.owner(source));
        let (target, source) = (DeviceRange::new(target, bytes), DeviceRange::new(source, bytes));
        if Arc::ptr_eq(&to.shared, &from.shared) {
            return to.access(op, &[source], &[target], |reads, writes| {
                writes[0].copy_from_slice(reads[0]);
                Ok(())
            });
        }
        to.access(op, &[], &[target], |_, writes| {
            from.access(op, &[source], &[], |reads, _| {
                writes[0].copy_from_slice(reads[0]);
                Ok(())
            })
        })
    }

    /// Calls `work` with ranges of the memory as slices. Until it returns, no other task may use the ranges that
    /// it writes. The slices are in the order of the ranges, and aligned as these are; empty ones are aligned, too.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a range is not within an allocation, `INTERNAL` if a task uses it already or
    /// if a range to write is named twice; and those of `work`.
    pub fn access<R>(
        &self,
        op: &'static str,
        reads: &[DeviceRange],
        writes: &[DeviceRange],
        work: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> Result<R>,
    ) -> Result<R> {
        let mut borrow = self.borrow(op, reads, writes)?;
        let (reads, mut writes) = borrow.slices();
        work(&reads, &mut writes)
    }

    pub(super) fn borrow(
        &self,
        op: &'static str,
        reads: &[DeviceRange],
        writes: &[DeviceRange],
    ) -> Result<Borrow> {
        self.check_process()?;
        let reads = self.ranges(op, reads)?;
        let writes = self.ranges(op, writes)?;
        self.shared.borrows.borrow(op, reads, writes)
    }

    /// Checks the ranges that `op` will use.
    /// Fails with `INVALID_ARGUMENT`, naming `op`, if a range is not within an allocation, and with
    /// `FAILED_PRECONDITION` in a forked process.
    pub(super) fn check(&self, op: &'static str, ranges: &[DeviceRange]) -> Result<()> {
        self.check_process()?;
        self.ranges(op, ranges).map(drop)
    }

    fn ranges(&self, op: &'static str, ranges: &[DeviceRange]) -> Result<Vec<Range<usize>>> {
        let allocator = lock(&self.shared.allocator);
        let range = |range: &DeviceRange| {
            let bytes = range.bytes();
            if bytes == 0 {
                return Ok(0..0);
            }
            let Some(start) = range.start() else {
                return Err(Error::invalid_argument(format!(
                    "`{op}` is to use {bytes} bytes and does not get an address"
                )));
            };
            let offset = self.offset(start);
            if !allocator.contains(offset, bytes) {
                return Err(Error::invalid_argument(format!(
                    "`{op}` is to use {bytes} bytes at {start:?}, which are not all allocated on this device"
                )));
            }
            // Both are within the mapping, and so fit.
            Ok(offset as usize..(offset + bytes) as usize)
        };
        ranges.iter().map(range).collect()
    }

    /// Takes the lock that a thread of the parent may hold during a fork.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        lock(&self.shared.allocator)
    }

    fn offset(&self, address: DevicePtr) -> u64 {
        // An address before the start wraps to an offset behind the end.
        address.address().wrapping_sub(self.shared.borrows.mapping.view())
    }

    /// Returns the memory of this plugin that the address is in, or this one if it is in none.
    pub(super) fn owner(&self, address: DevicePtr) -> Self {
        let is_in = |memory: &Self| {
            memory.check_process().is_ok()
                && memory.offset(address) < lock(&memory.shared.allocator).len
        };
        if is_in(self) {
            return self.clone();
        }
        let memories: Vec<_> =
            lock_across_forks(&MEMORIES).iter().filter_map(Weak::upgrade).collect();
        let mut memories = memories.into_iter().map(|shared| Self { shared });
        memories.find(is_in).unwrap_or_else(|| self.clone())
    }
}

#[cold]
pub(super) fn not_allocated(memory: DevicePtr) -> Error {
    Error::invalid_argument(format!("no allocation of this device starts at {memory:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn content_comes_back_from_either_memory() {
        for guarded in [true, false] {
            let [here, there] = [(); 2].map(|()| HostMemory::with(1 << 20, guarded).unwrap());
            let (a, b, c) = (
                here.allocate(100).unwrap(),
                here.allocate(100).unwrap(),
                there.allocate(100).unwrap(),
            );
            here.write("write", a, &[7; 100]).unwrap();
            here.copy("copy", b, a, 100).unwrap();
            here.copy("copy to another device", c, b, 100).unwrap();
            let mut back = [0; 100];
            there.read("read", &mut back, c).unwrap();
            assert_eq!(back, [7; 100]);
        }
    }

    #[test]
    fn ranges_that_are_not_allocated_are_refused_by_name() {
        let memory = HostMemory::new(1 << 20).unwrap();
        let a = memory.allocate(100).unwrap();
        let behind = DevicePtr::new(a.address() + 100).unwrap();
        let before = DevicePtr::new(a.address() - 1).unwrap();
        let elsewhere = DevicePtr::new(64).unwrap();
        for at in [behind, before, elsewhere] {
            let error = memory.write("Relu", at, &[0]).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("`Relu`"), "{error}");
        }
        memory.deallocate(a).unwrap();
        assert!(memory.write("Relu", a, &[0]).is_err(), "freed");
        assert_eq!(memory.deallocate(a).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn a_range_in_use_is_refused() {
        let memory = HostMemory::new(1 << 20).unwrap();
        let a = memory.allocate(100).unwrap();
        let range = DeviceRange::new(a, 100);
        memory
            .access("MatMul", &[range], &[], |_, _| {
                memory.read("copy_to_host", &mut [0; 100], a)?;
                let error = memory.write("copy_to_device", a, &[0; 8]).unwrap_err();
                assert_eq!(error.code(), Code::Internal);
                assert!(error.message().contains("`copy_to_device` and `MatMul`"), "{error}");
                Ok(())
            })
            .unwrap();
        memory.write("copy_to_device", a, &[0; 8]).unwrap();
    }

    #[test]
    fn the_limit_holds() {
        let memory = HostMemory::new(1 << 20).unwrap();
        let all = memory.allocate(1 << 20).unwrap();
        assert_eq!(memory.usage(), MemoryUsage { free: 0, total: 1 << 20 });
        assert_eq!(memory.allocate(1).unwrap_err().code(), Code::ResourceExhausted);
        memory.deallocate(all).unwrap();
        assert_eq!(memory.usage().free, 1 << 20);
        assert!(HostMemory::new(255).is_err() && HostMemory::new(u64::MAX).is_err());
    }

    #[test]
    fn the_host_cannot_touch_guarded_memory() {
        for (guarded, expected) in [(true, "---s"), (false, "rw-s")] {
            let memory = HostMemory::with(1 << 20, guarded).unwrap();
            let address = memory.allocate(8).unwrap().address();
            assert_eq!(protection(address), expected);
            assert_eq!(protection(address + (1 << 20) - 1), expected, "to the end");
        }
    }

    /// Returns the access rights of this process at an address.
    fn protection(address: u64) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let rights = maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
            (start..end).contains(&address).then(|| rest[..4].to_owned())
        });
        rights.expect("the address is mapped")
    }
}
