//! Timers.

use crate::abi::host_callback::HostCallback;
use crate::stream::Stream;
use crate::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tf_plugin_core::Result;

/// A timer between two points in a stream. Only TensorFlow 2.12 and 2.13 use it.
pub trait Timer<S: Stream>: Send + Sync {
    /// Enqueues the start.
    ///
    /// # Errors
    /// The start could not be enqueued.
    fn start(&self, stream: &S) -> Result<()>;

    /// Enqueues the end.
    ///
    /// # Errors
    /// The end could not be enqueued.
    fn stop(&self, stream: &S) -> Result<()>;

    /// Returns the time between the two; 0 if either has not been reached.
    fn elapsed(&self) -> Duration;
}

/// A timer for any stream, which takes the host's time in callbacks.
#[derive(Debug, Default)]
pub struct HostTimer {
    times: Arc<Mutex<Times>>,
}

/// The times of the start and of the end, once reached.
type Times = [Option<Instant>; 2];

impl HostTimer {
    fn mark<S: Stream>(&self, stream: &S, set: fn(&mut Times, Instant)) -> Result<()> {
        let times = Arc::clone(&self.times);
        stream.host_callback(HostCallback::new(move |result| {
            result?;
            set(&mut lock(&times), Instant::now());
            Ok(())
        }))
    }
}

impl<S: Stream> Timer<S> for HostTimer {
    fn start(&self, stream: &S) -> Result<()> {
        self.mark(stream, |times, now| *times = [Some(now), None])
    }

    fn stop(&self, stream: &S) -> Result<()> {
        self.mark(stream, |times, now| times[1] = Some(now))
    }

    fn elapsed(&self) -> Duration {
        match *lock(&self.times) {
            [Some(start), Some(stop)] => stop.duration_since(start),
            _ => Duration::ZERO,
        }
    }
}
