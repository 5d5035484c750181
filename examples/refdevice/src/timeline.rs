//! The tasks of the streams, for TensorFlow's profiler.

use crate::config::TYPE;
use se_plugin::host::FinishedTask;
use se_plugin::profiler::{Line, Timeline};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The timeline of all devices.
pub(crate) static TIMELINE: Timeline = Timeline::new(TYPE);

/// The lines of a device: one a stream.
#[derive(Debug)]
pub(crate) struct Timelines {
    device: usize,
    lines: Mutex<BTreeMap<u64, Line>>,
}

impl Timelines {
    /// Creates the lines of the device with this number.
    pub(crate) fn new(device: usize) -> Self {
        Self { device, lines: Mutex::default() }
    }

    /// Adds a task while a profiler is active.
    pub(crate) fn record(&self, task: &FinishedTask) {
        if !TIMELINE.is_active() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let name = || format!("Stream {}", task.stream);
        let line = *lines.entry(task.stream).or_insert_with(|| TIMELINE.line(self.device, name()));
        TIMELINE.record(line, task.op, task.start, task.duration);
    }
}
