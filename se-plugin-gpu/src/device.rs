//! The device.

use crate::backend::Gpu;
use crate::peers::{Peer, Peers};
use crate::queue::Queue;
use crate::stream::{GpuEvent, GpuStream};
use se_plugin::Counters;
use se_plugin::prelude::*;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The GPU, with its memory and streams.
pub struct GpuDevice {
    peer: Arc<Peer>,
    /// All devices.
    peers: Arc<Peers>,
    counters: Counters,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// How many streams were created.
    streams: AtomicUsize,
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuDevice").field("name", &self.peer.gpu.name).finish_non_exhaustive()
    }
}

impl GpuDevice {
    pub(crate) fn new(gpu: &Arc<Gpu>, peers: &Arc<Peers>, counters: Counters) -> Result<Self> {
        let peer = Peer::new(gpu)?;
        peers.add(&peer);
        Ok(Self {
            peer,
            peers: Arc::clone(peers),
            counters,
            queues: Mutex::default(),
            streams: AtomicUsize::new(1),
        })
    }

    /// Returns the GPU's name, as the driver reports it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.peer.gpu.name
    }
}

impl Device for GpuDevice {
    type Stream = GpuStream;
    type Event = GpuEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.peers.allocate(&self.peer, bytes)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.peer.gpu.check_process()?;
        self.peer.address_map.remove(memory)
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        let (total, used) = (self.peer.gpu.total, self.peer.gpu.used());
        Ok(MemoryUsage { free: total.saturating_sub(used), total })
    }
    fn create_stream(&self) -> Result<GpuStream> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let queue = Queue::new(&self.peer.gpu, &self.peer.health, number)?;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Ok(GpuStream {
            queue,
            address_map: Arc::clone(&self.peer.address_map),
            peers: Arc::clone(&self.peers),
            counters: self.counters.clone(),
        })
    }
    fn create_event(&self) -> Result<GpuEvent> {
        Ok(GpuEvent::default())
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let target = self.peer.address_map.find("copy_to_device", target, source.len() as u64)?;
        let mut batch = self.peer.direct()?;
        batch.upload(&target, source.len(), |to| to.copy_from_slice(source))?;
        batch.flush()
    }
    fn copy_to_host(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.counters.write()?;
        let bytes = target.len();
        let source = self.peer.address_map.find("copy_to_host", source, bytes as u64)?;
        let mut batch = self.peer.direct()?;
        let staged = batch.download(&source, bytes)?;
        batch.flush()?;
        target.write(0, batch.staged(staged));
        Ok(())
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let map = &self.peer.address_map;
        let find = |address| map.find("copy_on_device", address, bytes);
        let (Ok(target), Ok(source)) = (find(target), find(source)) else {
            return self.peers.copy(target, source, bytes)?.run();
        };
        let mut batch = self.peer.direct()?;
        batch.copy(&target, &source, bytes)?;
        batch.flush()
    }
    fn synchronize(&self) -> Result<()> {
        self.peer.gpu.check_process()?;
        let queues: Vec<_> = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.iter().filter_map(Weak::upgrade).collect()
        };
        queues.iter().try_for_each(|queue| queue.end().wait())?;
        self.peer.health.check()
    }
    fn hardware_name(&self) -> Option<String> {
        Some(format!("{} by {}", self.peer.gpu.name, self.peer.gpu.driver_info))
    }
}
