//! Commands in the GPU's stream, and events.

use super::compiler::Function;
use super::{ContextGuard, Device, failed};
use cudarc::driver::sys::{self, CUevent_flags, CUresult};
use cudarc::driver::{DriverError, result};
use se_plugin_gpu::backend::{
    BackendResult, LARGEST_BATCH, PUSH_BYTES, Span, WORKGROUP, now, poll,
};
use std::time::Duration;

/// Times of a batch: one before and one behind each command, since other batches run in the same stream.
const TIMES: usize = 2 * LARGEST_BATCH;

/// A part of the work in the GPU's stream. Its commands are sent as they are recorded.
pub(crate) struct Commands {
    /// The event at the end of the batch.
    done: sys::CUevent,
    /// The events that measure times, as many as a measured batch had commands.
    clock: Vec<sys::CUevent>,
    /// The number of times taken in this batch, if it is measured.
    taken: Option<usize>,
    /// Whether the time before the command was taken.
    is_stamped: bool,
    /// When the batch was seen to be done, in nanoseconds since the Unix epoch.
    ended: i64,
}

// SAFETY: events are addresses that CUDA lets any thread use.
unsafe impl Send for Commands {}

impl Commands {
    pub(super) fn new(device: &Device) -> BackendResult<Self> {
        let _entered = device.enter()?;
        let done = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| failed("create an event", error))?;
        Ok(Self { done, clock: Vec::new(), taken: None, is_stamped: false, ended: 0 })
    }

    /// Records the time, if the batch is measured.
    fn stamp(&mut self, device: &Device) -> BackendResult {
        let Some(taken) = self.taken.filter(|taken| *taken < TIMES) else { return Ok(()) };
        if taken == self.clock.len() {
            let event = result::event::create(CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(|error| failed("create an event", error))?;
            self.clock.push(event);
        }
        // SAFETY: event and stream are this context's; the event is not waited for by an earlier batch.
        unsafe { result::event::record(self.clock[taken], device.stream) }
            .map_err(|error| failed("record an event", error))?;
        self.taken = Some(taken + 1);
        Ok(())
    }

    /// Makes the context current for a command, and records the time before it.
    pub(super) fn enter(&mut self, device: &Device) -> BackendResult<ContextGuard> {
        let entered = device.enter()?;
        if !std::mem::replace(&mut self.is_stamped, true) {
            self.stamp(device)?;
        }
        Ok(entered)
    }

    pub(super) fn begin(&mut self, is_measured: bool) {
        self.taken = is_measured.then_some(0);
        self.is_stamped = false;
    }

    /// # Safety
    /// The function is one of a module that stays; `push` is what it takes, and the memory that it uses lives until the batch is
    /// done.
    pub(super) unsafe fn launch(
        &mut self,
        device: &Device,
        function: &Function,
        push: &[u8],
        [x, y, z]: [u32; 3],
    ) -> BackendResult {
        // The driver copies as many bytes as the kernel's argument has.
        #[repr(align(8))]
        struct Push([u8; PUSH_BYTES]);
        let _entered = self.enter(device)?;
        let mut argument = Push([0; PUSH_BYTES]);
        argument.0[..push.len()].copy_from_slice(push);
        let mut arguments = [(&raw mut argument).cast()];
        // SAFETY: the function is one of a module that stays; its only argument is at most so large; the memory that it uses
        // lives until the batch is done.
        unsafe {
            let (grid, block) = ((x, y, z), (WORKGROUP, 1, 1));
            result::launch_kernel(function.0, grid, block, 0, device.stream, &mut arguments)
        }
        .map_err(|error| failed("launch a kernel", error))
    }

    /// # Safety
    /// Both ranges are within their memory, which lives until the batch is done.
    pub(super) unsafe fn copy(
        &mut self,
        device: &Device,
        target: Span<'_, ()>,
        source: Span<'_, ()>,
    ) -> BackendResult {
        let _entered = self.enter(device)?;
        let (stream, bytes) = (device.stream, target.bytes as usize);
        let copied = match (target.host(), source.host()) {
            // SAFETY: both ranges are within their memory, which lives until the batch is done.
            (None, None) => unsafe {
                sys::cuMemcpyDtoDAsync_v2(target.address(), source.address(), bytes, stream)
            },
            // SAFETY: the range of the GPU and that of the host are within memory that lives until the batch is done.
            (None, Some(source)) => unsafe {
                sys::cuMemcpyHtoDAsync_v2(target.address(), source.cast(), bytes, stream)
            },
            // SAFETY: the range of the host and that of the GPU are within memory that lives until the batch is done.
            (Some(target), _) => unsafe {
                sys::cuMemcpyDtoHAsync_v2(target.cast(), source.address(), bytes, stream)
            },
        };
        copied.result().map_err(|error| failed("copy", error))
    }

    /// # Safety
    /// The range is within its memory, which lives until the batch is done, and aligned to words.
    pub(super) unsafe fn fill(
        &mut self,
        device: &Device,
        target: Span<'_, ()>,
        word: u32,
    ) -> BackendResult {
        let _entered = self.enter(device)?;
        let words = target.bytes as usize / 4;
        // SAFETY: the range is within its memory, and aligned, as the caller says.
        unsafe { sys::cuMemsetD32Async(target.address(), word, words, device.stream) }
            .result()
            .map_err(|error| failed("fill memory", error))
    }

    pub(super) fn mark(&mut self, device: &Device) -> BackendResult {
        self.is_stamped = false;
        let _entered = device.enter()?;
        self.stamp(device)
    }

    pub(super) fn send(&mut self, device: &Device) -> BackendResult {
        let _entered = device.enter()?;
        // SAFETY: event and stream are this context's.
        unsafe { result::event::record(self.done, device.stream) }
            .map_err(|error| failed("send a batch", error))
    }

    pub(super) fn wait(&mut self, device: &Device, limit: Duration) -> BackendResult<bool> {
        let _entered = device.enter()?;
        poll(limit, || {
            // SAFETY: the event is this context's.
            match unsafe { sys::cuEventQuery(self.done) } {
                CUresult::CUDA_SUCCESS => {
                    self.ended = now();
                    Ok(true)
                }
                CUresult::CUDA_ERROR_NOT_READY => Ok(false),
                error => Err(failed("wait for a batch", DriverError(error))),
            }
        })
    }

    pub(super) fn times(&mut self, device: &Device) -> BackendResult<Option<Vec<[i64; 2]>>> {
        let Some(taken) = self.taken.take() else { return Ok(None) };
        let _entered = device.enter()?;
        let events = &self.clock[..taken];
        let [first, ..] = events else { return Ok(None) };
        let since = |event: &sys::CUevent| {
            // SAFETY: both events are this context's, and done.
            unsafe { elapsed(*first, *event) }
                .map(|milliseconds| (f64::from(milliseconds) * 1e6) as i64)
                .map_err(|error| failed("read timestamps", error))
        };
        let times = events.iter().map(since).collect::<BackendResult<Vec<_>>>()?;
        // The GPU has no absolute clock, only differences: the last time is taken to be when the end was seen.
        let begun = self.ended - times.last().copied().unwrap_or_default();
        let pairs = times.chunks_exact(2);
        Ok(Some(pairs.map(|ends| [begun + ends[0], begun + ends[1]]).collect()))
    }

    /// # Safety
    /// The GPU does not execute the batch.
    pub(super) unsafe fn destroy(self, device: &Device) {
        let Ok(_entered) = device.enter() else { return };
        for event in self.clock.into_iter().chain([self.done]) {
            // SAFETY: nothing uses it later. There is nothing to do about an error.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

/// Returns the milliseconds between two events, with a function of all drivers: cudarc calls that of CUDA 12.8.
///
/// # Safety
/// Both events are of the context of this thread.
pub(super) unsafe fn elapsed(first: sys::CUevent, event: sys::CUevent) -> Result<f32, DriverError> {
    type Function = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
    // SAFETY: the driver is loaded, for good; its function has this type.
    let function = unsafe { sys::culib().get::<Function>(b"cuEventElapsedTime\0") };
    let function = function.map_err(|_| DriverError(CUresult::CUDA_ERROR_NOT_FOUND))?;
    let mut milliseconds = 0.0;
    // SAFETY: both events are of the context of this thread; it is a place for a number.
    unsafe { function(&raw mut milliseconds, first, event) }.result()?;
    Ok(milliseconds)
}
