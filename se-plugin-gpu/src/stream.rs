//! Streams and events.

use crate::address_map::AddressMap;
use crate::peers::Peers;
use crate::queue::{Point, Queue, Task};
use se_plugin::Counters;
use se_plugin::prelude::*;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A stream: a thread that sends its work to the GPU.
pub struct GpuStream {
    pub(crate) queue: Arc<Queue>,
    pub(crate) address_map: Arc<AddressMap>,
    /// All devices.
    pub(crate) peers: Arc<Peers>,
    pub(crate) counters: Counters,
}

/// An event: the position of the stream when it was last recorded.
#[derive(Default)]
pub struct GpuEvent(Mutex<Option<Point>>);

impl fmt::Debug for GpuStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuStream").field("gpu", &self.queue.gpu.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for GpuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuEvent").finish_non_exhaustive()
    }
}

impl GpuEvent {
    fn latest(&self) -> Option<Point> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Event for GpuEvent {
    fn status(&self) -> Result<EventStatus> {
        Ok(match self.latest() {
            Some(point) if !point.is_done() => EventStatus::Pending,
            _ => EventStatus::Complete,
        })
    }

    fn wait(&self) -> Result<()> {
        self.latest().map_or(Ok(()), |point| point.wait())
    }
}

impl GpuStream {
    pub(crate) fn push(&self, task: Task) -> Result<()> {
        self.queue.gpu.check_process()?;
        self.queue.health.check()?;
        self.queue.push_here(task);
        Ok(())
    }

    /// Writes a few bytes to a tensor of bytes, such as numbers that a kernel has in host memory.
    pub(crate) fn write(
        &self,
        op: &'static str,
        target: &DeviceTensor,
        bytes: Vec<u8>,
    ) -> Result<()> {
        let Some(ptr) = target.ptr() else { return Ok(()) };
        let target = self.address_map.find(op, ptr, bytes.len() as u64)?;
        self.push(Task::Write { target, bytes })
    }

    fn wait_for(&self, point: Point) -> Result<()> {
        if point.is_of(&self.queue) || point.is_done() {
            return Ok(());
        }
        self.queue.push(Task::Wait(point))
    }
}

impl Stream for GpuStream {
    type Event = GpuEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        let target = self.address_map.find("copy_to_device", target, source.len() as u64)?;
        self.push(Task::Upload { target, source })
    }

    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        self.counters.write()?;
        let source = self.address_map.find("copy_to_host", source, target.len() as u64)?;
        self.push(Task::Download { target, source })
    }

    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let find = |address| self.address_map.find("copy_on_device", address, bytes);
        match (find(target), find(source)) {
            (Ok(target), Ok(source)) => self.push(Task::Copy { target, source, bytes }),
            _ => self.push(Task::Across(self.peers.copy(target, source, bytes)?)),
        }
    }

    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        let target = self.address_map.find("fill", target, bytes)?;
        self.push(Task::Fill { target, pattern: pattern.to_bytes(), bytes })
    }

    fn wait_stream(&self, other: &Self) -> Result<()> {
        self.wait_for(other.queue.end())
    }

    fn record_event(&self, event: &GpuEvent) -> Result<()> {
        *event.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.queue.end());
        Ok(())
    }

    fn wait_event(&self, event: &GpuEvent) -> Result<()> {
        event.latest().map_or(Ok(()), |point| self.wait_for(point))
    }

    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        self.queue.push(Task::Callback(callback))
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.end().wait()?;
        self.status()
    }

    fn status(&self) -> Result<()> {
        self.queue.gpu.check_process()?;
        self.queue.health.check()
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        // The stream's work is done first. A drop on the stream's own thread does not wait.
        let _ = self.queue.end().wait();
        self.queue.close();
    }
}
