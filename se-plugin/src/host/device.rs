//! A device on the host.

use super::delay::Delay;
use super::event::WorkerEvent;
use super::memory::{HostMemory, not_allocated};
use super::observer::Observer;
use super::queue::{QueuePosition, StreamCore};
use super::stream::WorkerStream;
use crate::abi::host_buf::HostBuf;
use crate::device::{AllocatorStats, Device, MemoryUsage};
use crate::health::Health;
use crate::memory::DevicePtr;
use crate::sync::lock;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tf_plugin_core::{Code, Result};

/// A complete device, which needs only kernels: its memory is [`HostMemory`], and its streams are
/// [`WorkerStream`]s.
///
/// If TensorFlow frees memory while work in a stream may still use it, the device does not reuse it before
/// all streams have finished that work. So `Platform::USE_BFC_ALLOCATOR` can be `true` or `false`.
pub struct HostDevice {
    memory: HostMemory,
    health: Health,
    delay: Delay,
    observer: Option<Arc<dyn Observer>>,
    streams: Mutex<Vec<Weak<StreamCore>>>,
    /// The number of streams that were created so far.
    made: AtomicU64,
    /// Memory that will be free once the streams are at these points.
    retired: Mutex<Vec<(DevicePtr, Vec<QueuePosition>)>>,
}

impl HostDevice {
    /// Creates a device with this memory.
    #[must_use]
    pub fn new(memory: HostMemory) -> Self {
        let (health, delay, streams, made, retired) = Default::default();
        Self { memory, health, delay, observer: None, streams, made, retired }
    }

    /// Returns the device with random delays of its tasks.
    #[must_use]
    pub fn with_delay(self, delay: Delay) -> Self {
        Self { delay, ..self }
    }

    /// Returns the device with an observer, which is called after each task.
    #[must_use]
    pub fn with_observer(self, observer: impl Observer) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Returns the memory.
    #[must_use]
    pub fn memory(&self) -> &HostMemory {
        &self.memory
    }

    /// Returns the points at which the work that the streams have now is done.
    fn ends(&self) -> Vec<QueuePosition> {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        let streams = streams.iter().filter_map(Weak::upgrade);
        streams.filter_map(|stream| stream.end().ok()).filter(|end| !end.is_done()).collect()
    }

    /// Frees the retired memory whose points are reached, or all of it with `wait`. In a fork it fails before it locks.
    fn reclaim(&self, wait: bool) -> Result<()> {
        self.memory.check_process()?;
        if wait {
            // Without the lock: a host callback may free memory, too.
            let all: Vec<_> =
                lock(&self.retired).iter().flat_map(|(_, points)| points.clone()).collect();
            all.iter().try_for_each(QueuePosition::wait_elsewhere)?;
        }
        let mut retired = lock(&self.retired);
        let is_done =
            |(_, points): &mut (_, Vec<QueuePosition>)| points.iter().all(QueuePosition::is_done);
        retired.extract_if(.., is_done).try_for_each(|(memory, _)| self.memory.deallocate(memory))
    }
}

impl fmt::Debug for HostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostDevice").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl Device for HostDevice {
    type Stream = WorkerStream;
    type Event = WorkerEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.reclaim(false)?;
        match self.memory.allocate(bytes) {
            Err(error) if error.code() == Code::ResourceExhausted => {
                self.reclaim(true)?;
                self.memory.allocate(bytes)
            }
            result => result,
        }
    }

    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.reclaim(false)?;
        let mut retired = lock(&self.retired);
        if !self.memory.is_allocated(memory) || retired.iter().any(|&(other, _)| other == memory) {
            return Err(not_allocated(memory));
        }
        let ends = self.ends();
        if ends.is_empty() {
            return self.memory.deallocate(memory);
        }
        retired.push((memory, ends));
        Ok(())
    }

    fn memory_usage(&self) -> Result<MemoryUsage> {
        self.reclaim(false)?;
        Ok(self.memory.usage())
    }

    fn create_stream(&self) -> Result<WorkerStream> {
        self.memory.check_process()?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let (health, observer) = (self.health.clone(), self.observer.clone());
        let core = StreamCore::new(&self.memory, health, self.delay, number, observer);
        let stream = WorkerStream::of(core);
        lock(&self.streams).push(Arc::downgrade(stream.core()));
        Ok(stream)
    }

    fn create_event(&self) -> Result<WorkerEvent> {
        Ok(WorkerEvent::new())
    }

    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        self.memory.write("copy_to_device", target, source)
    }

    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.memory.read_into("copy_to_host", target, source)
    }

    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.memory.copy("copy_on_device", target, source, bytes)
    }

    fn synchronize(&self) -> Result<()> {
        self.memory.check_process()?;
        self.ends().iter().try_for_each(QueuePosition::wait_elsewhere)?;
        self.health.check()
    }

    fn allocator_stats(&self) -> Option<AllocatorStats> {
        self.memory.check_process().ok()?;
        Some(self.memory.stats())
    }
}
