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
/// If the fastest way takes longer, in milliseconds, they run only once.
const LONG: f32 = 200.0;

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
/// milliseconds, or `None` if none of them can run: a way returns whether it can. The context is that of this thread.
///
/// # Errors
/// Those of `ways` and of the driver, or if the GPU takes longer than `limit`.
pub(super) fn fastest(
    stream: CUstream,
    limit: Duration,
    ways: usize,
    mut run: impl FnMut(usize) -> Result<bool, Failure>,
) -> Result<Option<(usize, f32)>, Failure> {
    let mut able = Vec::new();
    let mut events = vec![Event::record(stream)?];
    for way in 0..ways {
        if run(way)? {
            able.push(way);
            events.push(Event::record(stream)?);
        }
    }
    let first = times(&events, limit)?;
    let least = |times: &mut dyn Iterator<Item = (usize, f32)>| {
        times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, time)| (able[at], time))
    };
    let found = least(&mut first.iter().copied().enumerate());
    // The first run may load code. That counts little in a long one.
    if able.len() < 2 || found.is_some_and(|(_, time)| time > LONG) {
        return Ok(found);
    }
    let mut events = vec![Event::record(stream)?];
    for _ in 0..REPEATS {
        for &way in &able {
            run(way)?;
            events.push(Event::record(stream)?);
        }
    }
    let again = times(&events, limit)?;
    Ok(least(&mut again.iter().enumerate().map(|(at, time)| (at % able.len(), *time))))
}

/// Waits for events, and returns the milliseconds between each two.
fn times(events: &[Event], limit: Duration) -> Result<Vec<f32>, Failure> {
    let Some(last) = events.last() else { return Ok(Vec::new()) };
    if !last.wait(limit)? {
        return Err(Failure::Library(format!("the GPU took longer than {limit:?} to try it")));
    }
    let between = |ends: &[Event]| {
        // SAFETY: both events are of the context of this thread.
        unsafe { elapsed(ends[0].0, ends[1].0) }
            .map_err(|error| failed("time a convolution", error).into())
    };
    events.windows(2).map(between).collect()
}
