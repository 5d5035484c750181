//! The platform and its device.

use crate::address_map::AddressMap;
use crate::backend::{Batch, Buffer, Gpu};
use crate::fusion::Fusion;
use crate::health::Health;
use crate::platform::{GpuPlatform, TIMELINE};
use crate::queue::Queue;
use crate::settings::{self, Settings};
use crate::stream::{GpuEvent, GpuStream};
use se_plugin::prelude::*;
use se_plugin::{Counters, host_has_gpu_kernels};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

#[device_plugin(graph_pass = Fusion, profiler = &*TIMELINE)]
impl Platform for GpuPlatform {
    const NAME: &'static str = "RUST_GPU";
    const TYPE: &'static str = "RUST_GPU";
    type Device = GpuDevice;

    fn device_type() -> &'static str {
        static CHOSEN: LazyLock<Option<String>> = LazyLock::new(settings::device_type);
        let default = if host_has_gpu_kernels() { Self::TYPE } else { "GPU" };
        CHOSEN.as_deref().unwrap_or(default)
    }
    fn new() -> Result<Self> {
        let settings = Settings::of_environment()?;
        let mut gpu = Gpu::open(&settings)?;
        gpu.total = gpu.total.min(settings.memory.unwrap_or(u64::MAX));
        if let Some(timeout) = settings.timeout {
            gpu.set_timeout(timeout);
        }
        let counters = Counters::new(0, settings.counters);
        Ok(Self { counters: counters.with_device_name(&gpu.name), gpu: Arc::new(gpu) })
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _ordinal: usize) -> Result<GpuDevice> {
        Ok(GpuDevice {
            gpu: Arc::clone(&self.gpu),
            counters: self.counters.clone(),
            health: Arc::new(Health::new(&self.gpu)),
            address_map: Arc::default(),
            direct: Mutex::new(Batch::new(&self.gpu)?),
            queues: Mutex::default(),
            streams: AtomicUsize::new(1),
        })
    }
}

/// The GPU, with its memory and streams.
pub struct GpuDevice {
    gpu: Arc<Gpu>,
    counters: Counters,
    health: Arc<Health>,
    address_map: Arc<AddressMap>,
    /// A batch for copies that are not ordered with any stream.
    direct: Mutex<Batch>,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// How many streams were created.
    streams: AtomicUsize,
}

impl GpuDevice {
    /// Returns the GPU's name, as the driver reports it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.gpu.name
    }

    fn direct(&self) -> Result<MutexGuard<'_, Batch>> {
        self.gpu.check_process()?;
        Ok(self.direct.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Device for GpuDevice {
    type Stream = GpuStream;
    type Event = GpuEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.address_map.add(Buffer::local(&self.gpu, bytes)?)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.gpu.check_process()?;
        self.address_map.remove(memory)
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        let (total, used) = (self.gpu.total, self.gpu.used());
        Ok(MemoryUsage { free: total.saturating_sub(used), total })
    }
    fn create_stream(&self) -> Result<GpuStream> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let queue = Queue::new(&self.gpu, &self.health, number)?;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Ok(GpuStream {
            queue,
            address_map: Arc::clone(&self.address_map),
            counters: self.counters.clone(),
        })
    }
    fn create_event(&self) -> Result<GpuEvent> {
        Ok(GpuEvent::default())
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let target = self.address_map.find("copy_to_device", target, source.len() as u64)?;
        let mut batch = self.direct()?;
        batch.upload(&target, source.len(), |to| to.copy_from_slice(source))?;
        batch.flush()
    }
    fn copy_to_host(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.counters.write()?;
        let bytes = target.len();
        let source = self.address_map.find("copy_to_host", source, bytes as u64)?;
        let mut batch = self.direct()?;
        let staged = batch.download(&source, bytes)?;
        batch.flush()?;
        target.write(0, batch.staged(staged));
        Ok(())
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let target = self.address_map.find("copy_on_device", target, bytes)?;
        let source = self.address_map.find("copy_on_device", source, bytes)?;
        let mut batch = self.direct()?;
        batch.copy(&target, &source, bytes)?;
        batch.flush()
    }
    fn synchronize(&self) -> Result<()> {
        self.gpu.check_process()?;
        let queues: Vec<_> = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.iter().filter_map(Weak::upgrade).collect()
        };
        queues.iter().try_for_each(|queue| queue.end().wait())?;
        self.health.check()
    }
    fn hardware_name(&self) -> Option<String> {
        Some(format!("{} by {}", self.gpu.name, self.gpu.driver_info))
    }
}
