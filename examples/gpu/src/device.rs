//! The platform and its device.

use crate::abi::{Backend, Batch, Block, Gpu};
use crate::fusion::{self, Fusion};
use crate::health::Health;
use crate::kernels::trial;
use crate::queue::Queue;
use crate::regions::Regions;
use crate::stream::{GpuEvent, GpuStream};
use se_plugin::prelude::*;
use se_plugin::profiler::Timeline;
use se_plugin::{Counters, host_has_gpu_kernels};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// An environment variable that is not empty.
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A setting, if there is one.
fn parsed<T>(name: &str, parse: impl Fn(&str) -> Option<T>, example: &str) -> Result<Option<T>> {
    let Some(text) = setting(name) else { return Ok(None) };
    let parsed = parse(&text).ok_or_else(|| {
        Error::invalid_argument(format!("{name}={text} is not understood; write {example}"))
    });
    parsed.map(Some)
}

/// A setting that turns something off.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value that is not understood.
pub(crate) fn flag(name: &str) -> Result<bool> {
    let flag = |text: &str| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    Ok(parsed(name, flag, &format!("{name}=0 or {name}=1"))?.unwrap_or(true))
}

/// What streams did, for TensorFlow's profiler.
pub(crate) static TIMELINE: LazyLock<Timeline> =
    LazyLock::new(|| Timeline::new(GpuPlatform::device_type()));

/// The platform: one card.
pub struct GpuPlatform {
    gpu: Arc<Gpu>,
    counters: Counters,
}

#[device_plugin(graph_pass = Fusion, profiler = &*TIMELINE)]
impl Platform for GpuPlatform {
    const NAME: &'static str = "RUST_GPU";
    const TYPE: &'static str = "RUST_GPU";
    type Device = GpuDevice;

    fn device_type() -> &'static str {
        static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| setting("RUST_GPU_TYPE"));
        let own = if host_has_gpu_kernels() { Self::TYPE } else { "GPU" };
        CHOSEN.as_deref().unwrap_or(own)
    }
    fn new() -> Result<Self> {
        let bytes = |mib: &str| mib.parse::<u64>().ok()?.checked_mul(1 << 20);
        let limit = parsed("RUST_GPU_MEMORY_MIB", bytes, "RUST_GPU_MEMORY_MIB=512")?;
        let seconds = |text: &str| {
            let seconds = text.parse().ok()?;
            let limit = Duration::try_from_secs_f64(seconds).ok()?;
            (seconds == 0.0 || !limit.is_zero()).then_some(limit)
        };
        let timeout =
            parsed("RUST_GPU_TIMEOUT_S", seconds, "RUST_GPU_TIMEOUT_S=300, 0 for no limit")?;
        fusion::is_on()?;
        let backend = parsed(
            "RUST_GPU_BACKEND",
            Backend::parse,
            "RUST_GPU_BACKEND=cuda or RUST_GPU_BACKEND=vulkan",
        )?;
        let mut gpu = Gpu::open(backend, setting("RUST_GPU_CARD").as_deref())?;
        gpu.total = gpu.total.min(limit.unwrap_or(u64::MAX));
        if let Some(timeout) = timeout {
            gpu.set_timeout(timeout);
        }
        if !flag("RUST_GPU_COOPERATIVE_MATRICES")? {
            gpu.offered = None;
        }
        let counters = Counters::new(0, setting("RUST_GPU_COUNTERS").map(Into::into));
        Ok(Self { counters: counters.with_card(&gpu.name), gpu: Arc::new(gpu) })
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _ordinal: usize) -> Result<GpuDevice> {
        let device = GpuDevice {
            gpu: Arc::clone(&self.gpu),
            counters: self.counters.clone(),
            health: Arc::new(Health::new(&self.gpu)),
            regions: Arc::default(),
            direct: Mutex::new(Batch::new(&self.gpu)?),
            queues: Mutex::default(),
            streams: AtomicUsize::new(1),
        };
        device.try_cooperative_matrices();
        Ok(device)
    }
}

/// The card, with its memory and streams.
pub struct GpuDevice {
    gpu: Arc<Gpu>,
    counters: Counters,
    health: Arc<Health>,
    regions: Arc<Regions>,
    /// For copies in no order with any stream.
    direct: Mutex<Batch>,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// How many there were.
    streams: AtomicUsize,
}

impl GpuDevice {
    /// `copy_to_host` without the counters.
    pub(crate) fn download(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        let bytes = target.len();
        let source = self.regions.find("copy_to_host", source, bytes as u64)?;
        let mut batch = self.direct()?;
        let staged = batch.download(&source, bytes)?;
        batch.flush()?;
        target.write(0, batch.staged(staged));
        Ok(())
    }

    fn try_cooperative_matrices(&self) {
        let Some(matrix) = self.gpu.offered else { return };
        match trial::multiply(self, matrix) {
            Ok(()) => {
                if self.gpu.cooperative.set(matrix).is_ok() {
                    log::info!("RUST_GPU multiplies float16 by cooperative matrices of {matrix}");
                }
            }
            Err(error) => log::warn!(
                "RUST_GPU multiplies float16 without cooperative matrices of {matrix}: {}; update the driver of `{}`",
                error.message(),
                self.gpu.name
            ),
        }
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
        self.regions.add(Block::local(&self.gpu, bytes)?)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.gpu.check_process()?;
        self.regions.remove(memory)
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
        Ok(GpuStream { queue, regions: Arc::clone(&self.regions), counters: self.counters.clone() })
    }
    fn create_event(&self) -> Result<GpuEvent> {
        Ok(GpuEvent::default())
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let target = self.regions.find("copy_to_device", target, source.len() as u64)?;
        let mut batch = self.direct()?;
        batch.upload(&target, source.len(), |to| to.copy_from_slice(source))?;
        batch.flush()
    }
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.counters.write()?;
        self.download(target, source)
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let target = self.regions.find("copy_on_device", target, bytes)?;
        let source = self.regions.find("copy_on_device", source, bytes)?;
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
        Some(self.gpu.name.clone())
    }
}
