//! Times the ways to compute a convolution.

use super::Failure;
use crate::cuda::commands::elapsed;
use crate::cuda::failed;
use cudarc::driver::sys::{self, CUevent_flags, CUresult, CUstream};
use cudarc::driver::{DriverError, result};
use se_plugin_gpu::backend::{BackendResult, poll};
use std::time::Duration;

/// How often each way is timed, after it has run once: of the times the least counts.
const REPEATS: usize = 3;
/// If the fastest way takes longer, in milliseconds, they are timed only once.
const LONG: f32 = 200.0;
/// A way that takes so many times as long as the fastest one is timed only once.
const SLOW: f32 = 3.0;

/// An event that is destroyed when it is dropped.
struct Event(sys::CUevent);

impl Event {
    /// Records an event behind what is in the stream of this context.
    fn record(stream: CUstream) -> BackendResult<Self> {
        let what = |error| failed("time a convolution", error);
        let event = Self(result::event::create(CUevent_flags::CU_EVENT_DEFAULT).map_err(what)?);
        // SAFETY: event and stream are of the context of this thread.
        unsafe { result::event::record(event.0, stream) }.map_err(what)?;
        Ok(event)
    }

    /// Waits until the stream has reached it. Returns whether that was within the limit.
    fn wait(&self, limit: Duration) -> BackendResult<bool> {
        // SAFETY: the event is of the context of this thread.
        poll(limit, || match unsafe { sys::cuEventQuery(self.0) } {
            CUresult::CUDA_SUCCESS => Ok(true),
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(failed("time a convolution", DriverError(error))),
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the driver destroys it when the stream has reached it. There is nothing to do about an error.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// Runs each of `ways`, which enqueue work into the stream, several times. Returns the fastest one and its time in
/// milliseconds, infinity if it is the only one, or `None` if none can run: a way returns whether it can. The context is that of
/// this thread.
///
/// # Errors
/// Those of `ways` and of the driver, or if the GPU takes longer than `limit` for what is in the stream or for a round.
pub(super) fn fastest(
    stream: CUstream,
    limit: Duration,
    ways: usize,
    mut run: impl FnMut(usize) -> Result<bool, Failure>,
) -> Result<Option<(usize, f32)>, Failure> {
    // What is in the stream does not count, nor a first run, which may load code.
    wait(&Event::record(stream)?, limit)?;
    let mut able = Vec::new();
    for way in 0..ways {
        if run(way)? {
            able.push((way, f32::INFINITY));
        }
    }
    wait(&Event::record(stream)?, limit)?;
    for _ in 0..REPEATS {
        let fastest = able.iter().map(|(_, least)| *least).fold(f32::INFINITY, f32::min);
        able.retain(|(_, least)| fastest.is_infinite() || *least <= SLOW * fastest);
        if able.len() < 2 || fastest.is_finite() && fastest > LONG {
            break;
        }
        let mut events = vec![Event::record(stream)?];
        for (way, _) in &able {
            if !run(*way)? {
                return Err(Failure::Library("an algorithm runs only once".into()));
            }
            events.push(Event::record(stream)?);
        }
        wait(&events[able.len()], limit)?;
        for ((_, least), ends) in able.iter_mut().zip(events.windows(2)) {
            // SAFETY: both events are of the context of this thread.
            let time = unsafe { elapsed(ends[0].0, ends[1].0) }
                .map_err(|error| failed("time a convolution", error))?;
            *least = least.min(time);
        }
    }
    Ok(able.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)))
}

/// Waits until the stream has reached an event.
fn wait(event: &Event, limit: Duration) -> Result<(), Failure> {
    if event.wait(limit)? { Ok(()) } else { Err(Failure::Hung) }
}
