//! The device that is measured: what it does itself is as little as possible, so that the SDK's part shows.
//!
//! `device.cc` beside this is the same device by hand. Its memory is one range of the host's behind a lock;
//! addresses are numbers that nobody can follow. Work is done within the call that requests it, under the lock,
//! so a stream is only a count of what was done in it, and an event is what that count was.
#![forbid(unsafe_code)]

mod blocks;
mod kernels;

use blocks::Blocks;
use se_plugin::AllocatorStats;
use se_plugin::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the memory seems to be. Nothing of the process is there.
const BASE: u64 = 0x00d0_0000_0000_0000;
/// How much memory there is, in bytes. None is used before it is written to.
const SIZE: u64 = 1 << 30;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct BenchPlatform;

#[device_plugin]
impl Platform for BenchPlatform {
    const NAME: &'static str = "RUST_BENCH";
    const TYPE: &'static str = "RUST_BENCH";
    type Device = BenchDevice;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _ordinal: usize) -> Result<BenchDevice> {
        let memory = Memory { bytes: Mutex::new(vec![0; SIZE as usize].into()) };
        Ok(BenchDevice { memory: Arc::new(memory), blocks: Mutex::new(Blocks::new(SIZE)) })
    }
}

struct BenchDevice {
    memory: Arc<Memory>,
    blocks: Mutex<Blocks>,
}

/// The memory that the streams work on.
struct Memory {
    bytes: Mutex<Box<[u8]>>,
}

/// A range of the memory.
fn part(memory: &mut [u8], at: DevicePtr, bytes: u64) -> Result<&mut [u8]> {
    let start = at.address().wrapping_sub(BASE);
    let end = start.wrapping_add(bytes);
    // Indices fit, since the memory is within the process.
    let part = if start <= end { memory.get_mut(start as usize..end as usize) } else { None };
    part.ok_or_else(|| outside(at))
}

#[cold]
fn outside(at: DevicePtr) -> Error {
    Error::invalid_argument(format!("{at:?} is not the device's"))
}

#[cold]
fn used_up() -> Error {
    Error::resource_exhausted("the memory is used up")
}

impl Memory {
    fn copy(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let mut memory = lock(&self.bytes);
        part(&mut memory, target, bytes)?;
        part(&mut memory, source, bytes)?;
        let [target, source] = [target, source].map(|at| (at.address() - BASE) as usize);
        memory.copy_within(source..source + bytes as usize, target);
        Ok(())
    }
}

impl Device for BenchDevice {
    type Stream = BenchStream;
    type Event = BenchEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        let offset = lock(&self.blocks).allocate(bytes);
        let address = offset.and_then(|offset| DevicePtr::new(BASE + offset));
        address.ok_or_else(used_up)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        let freed = lock(&self.blocks).free(memory.address().wrapping_sub(BASE));
        freed.ok_or_else(|| Error::invalid_argument(format!("{memory:?} is not allocated")))
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        let used = lock(&self.blocks).in_use();
        Ok(MemoryUsage { free: SIZE - used, total: SIZE })
    }
    fn create_stream(&self) -> Result<BenchStream> {
        Ok(BenchStream { memory: Arc::clone(&self.memory), done: Arc::default() })
    }
    fn create_event(&self) -> Result<BenchEvent> {
        Ok(BenchEvent::default())
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut memory = lock(&self.memory.bytes);
        part(&mut memory, target, source.len() as u64)?.copy_from_slice(source);
        Ok(())
    }
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        let mut memory = lock(&self.memory.bytes);
        let len = target.len() as u64;
        target.copy_from(part(&mut memory, source, len)?);
        Ok(())
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.memory.copy(target, source, bytes)
    }
    fn synchronize(&self) -> Result<()> {
        // Work that has begun on another thread is done once the lock is free.
        drop(lock(&self.memory.bytes));
        Ok(())
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        Some(lock(&self.blocks).stats())
    }
}

/// A stream: all of its work is done already.
struct BenchStream {
    memory: Arc<Memory>,
    /// How much was done in it.
    done: Arc<AtomicU64>,
}

impl BenchStream {
    /// Does work.
    fn work(&self, body: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let mut memory = lock(&self.memory.bytes);
        body(&mut memory)?;
        self.done.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Stream for BenchStream {
    type Event = BenchEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        self.work(|memory| {
            let bytes = source.len() as u64;
            source.copy_to(part(memory, target, bytes)?);
            Ok(())
        })
    }
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        self.work(|memory| {
            let bytes = target.len() as u64;
            target.copy_from(part(memory, source, bytes)?);
            Ok(())
        })
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.memory.copy(target, source, bytes)?;
        self.done.fetch_add(1, Ordering::Release);
        Ok(())
    }
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        self.work(|memory| {
            pattern.fill(part(memory, target, bytes)?);
            Ok(())
        })
    }
    fn wait_stream(&self, _other: &Self) -> Result<()> {
        // Work that has begun on another thread is done once the lock is free.
        drop(lock(&self.memory.bytes));
        Ok(())
    }
    fn record_event(&self, event: &BenchEvent) -> Result<()> {
        let number = self.done.load(Ordering::Acquire);
        let record = Some((Arc::clone(&self.done), number));
        let old = std::mem::replace(&mut *lock(&event.record), record);
        drop(old);
        Ok(())
    }
    fn wait_event(&self, event: &BenchEvent) -> Result<()> {
        event.wait()
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        // A real device has a thread for this. Nothing that is measured waits for another callback.
        callback.complete(Ok(()));
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        drop(lock(&self.memory.bytes));
        Ok(())
    }
}

/// An event: where it was recorded last.
#[derive(Default)]
struct BenchEvent {
    record: Mutex<Option<(Arc<AtomicU64>, u64)>>,
}

impl Event for BenchEvent {
    fn status(&self) -> Result<EventStatus> {
        Ok(match &*lock(&self.record) {
            Some((done, number)) if done.load(Ordering::Acquire) < *number => EventStatus::Pending,
            _ => EventStatus::Complete,
        })
    }
    fn wait(&self) -> Result<()> {
        // Work is done before it can be recorded.
        match self.status()? {
            EventStatus::Complete => Ok(()),
            EventStatus::Pending => Err(Error::internal("an event is ahead of its stream")),
        }
    }
}
