//! Events of worker streams.

use super::queue::QueuePosition;
use crate::stream::{Event, EventStatus};
use crate::sync::{ForkMutex, lock_across_forks};
use tf_plugin_core::Result;

/// An event of [`WorkerStream`](super::WorkerStream)s: the point in a stream where it was last recorded.
#[derive(Debug, Default)]
pub struct WorkerEvent {
    /// `None` until it is recorded.
    latest: ForkMutex<Option<QueuePosition>>,
}

impl WorkerEvent {
    /// Creates an event, which is complete until it is recorded.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn set(&self, point: QueuePosition) {
        *lock_across_forks(&self.latest) = Some(point);
    }

    pub(super) fn latest(&self) -> Option<QueuePosition> {
        lock_across_forks(&self.latest).clone()
    }
}

impl Event for WorkerEvent {
    fn status(&self) -> Result<EventStatus> {
        match self.latest() {
            Some(point) if !point.is_done() => point.check_process().map(|()| EventStatus::Pending),
            _ => Ok(EventStatus::Complete),
        }
    }

    fn wait(&self) -> Result<()> {
        match self.latest() {
            Some(point) => point.wait_elsewhere(),
            None => Ok(()),
        }
    }
}
