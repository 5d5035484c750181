//! Observers of the tasks of streams.

use std::time::Duration;

/// An observer of the tasks of a device's streams: for counters, or for the timeline of a profiler.
///
/// Closures are observers.
pub trait Observer: Send + Sync + 'static {
    /// Observes a task that is done. Called on the stream's thread, before threads that wait for the task continue.
    fn finished(&self, task: &FinishedTask);
}

impl<F: Fn(&FinishedTask) + Send + Sync + 'static> Observer for F {
    fn finished(&self, task: &FinishedTask) {
        self(task);
    }
}

/// A task that is done: a copy, a fill, or launched work. Waits and host callbacks are not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinishedTask {
    /// The number of the stream among those of its device, from 0 on.
    pub stream: u64,
    /// The name that the task was launched under; for copies and fills that of the method.
    pub op: &'static str,
    /// When it began, in nanoseconds since the Unix epoch, as [`profiler::now`](crate::profiler::now).
    pub start: u64,
    /// How long it took, with its delay.
    pub duration: Duration,
    /// Whether it failed.
    pub failed: bool,
}
