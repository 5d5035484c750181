//! Streams and events: queues of the driver, and positions in them.

use crate::driver::{Position, Queue};
use se_plugin::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// A queue of work.
pub struct DeviceStream(pub(crate) Arc<Queue>);

/// The position of a stream when the event was last recorded.
#[derive(Default)]
pub struct DeviceEvent(Mutex<Option<Position>>);

impl DeviceEvent {
    fn latest(&self) -> Option<Position> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Event for DeviceEvent {
    fn status(&self) -> Result<EventStatus> {
        Ok(match self.latest() {
            Some(position) if !position.is_done()? => EventStatus::Pending,
            _ => EventStatus::Complete,
        })
    }

    fn wait(&self) -> Result<()> {
        self.latest().map_or(Ok(()), |position| position.wait())
    }
}

impl Stream for DeviceStream {
    type Event = DeviceEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        self.0.copy_from_host(target, source)
    }

    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        self.0.copy_to_host(target, source)
    }

    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.0.copy(target, source, bytes)
    }

    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        self.0.fill(target, pattern.to_bytes(), bytes)
    }

    fn wait_stream(&self, other: &Self) -> Result<()> {
        self.0.wait_for(other.0.end()?)
    }

    fn record_event(&self, event: &DeviceEvent) -> Result<()> {
        *event.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.0.end()?);
        Ok(())
    }

    fn wait_event(&self, event: &DeviceEvent) -> Result<()> {
        event.latest().map_or(Ok(()), |position| self.0.wait_for(position))
    }

    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        // A driver that does not allow calls of itself here needs a thread of the stream's own: see `Stream::host_callback`.
        self.0.call(move || callback.complete(Ok(())))
    }

    fn synchronize(&self) -> Result<()> {
        self.0.end()?.wait()
    }

    fn status(&self) -> Result<()> {
        self.0.status()
    }
}
