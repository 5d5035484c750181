//! Commands in the GPU's stream, and events.

use super::glsl::THREADS;
use super::{Device, failed};
use crate::backend::clock::now;
use crate::backend::driver::{
    BackendResult, Convolution, Dispatch, LARGEST_BATCH, MatMul, MemoryOffset, PUSH_BYTES, Recorder,
};
use cudarc::driver::sys::{self, CUevent_flags, CUfunction, CUresult};
use cudarc::driver::{DriverError, result};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Times of a batch: one before and one behind each command, since other batches run in the same stream.
const TIMES: usize = 2 * LARGEST_BATCH;

/// How long a wait only yields to other threads, since most batches take no longer.
const SPIN: Duration = Duration::from_micros(50);
/// The pause between later checks.
const PAUSE: Duration = Duration::from_micros(50);

/// A part of the work in the GPU's stream. Its commands are sent as they are recorded.
pub(super) struct CudaRecorder {
    device: Arc<Device>,
    /// The event at the end of the batch.
    done: sys::CUevent,
    /// The events that measure times, as many as a measured batch had commands.
    clock: Vec<sys::CUevent>,
    /// The number of times taken in this batch, if it is measured.
    taken: Option<usize>,
    /// When the batch was seen to be done, in nanoseconds since the Unix epoch.
    ended: i64,
}

// SAFETY: events are addresses that CUDA lets any thread use.
unsafe impl Send for CudaRecorder {}

impl CudaRecorder {
    pub(super) fn new(device: &Arc<Device>) -> BackendResult<Self> {
        let _entered = device.enter()?;
        let done = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| failed("create an event", error))?;
        Ok(Self { device: Arc::clone(device), done, clock: Vec::new(), taken: None, ended: 0 })
    }

    /// Records the time, if the batch is measured.
    fn stamp(&mut self) -> BackendResult {
        let Some(taken) = self.taken.filter(|taken| *taken < TIMES) else { return Ok(()) };
        if taken == self.clock.len() {
            let event = result::event::create(CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(|error| failed("create an event", error))?;
            self.clock.push(event);
        }
        // SAFETY: event and stream are this context's; the event is not waited for by an earlier batch.
        unsafe { result::event::record(self.clock[taken], self.device.stream) }
            .map_err(|error| failed("record an event", error))?;
        self.taken = Some(taken + 1);
        Ok(())
    }

    /// Launches a shader.
    ///
    /// # Safety
    /// As for [`Recorder::dispatch`]; the context is that of this thread.
    unsafe fn launch(&self, shader: &Dispatch) -> BackendResult {
        // The driver copies as many bytes as the kernel's argument has.
        #[repr(align(8))]
        struct Push([u8; PUSH_BYTES]);
        let mut argument = Push([0; PUSH_BYTES]);
        argument.0[..shader.push.len()].copy_from_slice(&shader.push);
        let mut arguments = [(&raw mut argument).cast()];
        let [x, y, z] = shader.groups;
        // SAFETY: the function is one of a module that stays; its only argument is at most so large; the memory that it uses
        // lives until the batch is done.
        unsafe {
            let function = shader.pipeline.0 as CUfunction;
            let (grid, block) = ((x, y, z), (THREADS, 1, 1));
            let stream = self.device.stream;
            result::launch_kernel(function, grid, block, 0, stream, &mut arguments)
        }
        .map_err(|error| failed("launch a kernel", error))
    }
}

impl Recorder for CudaRecorder {
    unsafe fn begin(&mut self, is_measured: bool) -> BackendResult {
        self.taken = is_measured.then_some(0);
        Ok(())
    }

    unsafe fn copy(
        &mut self,
        target: MemoryOffset<'_>,
        source: MemoryOffset<'_>,
        bytes: u64,
    ) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()?;
        let (stream, bytes) = (self.device.stream, bytes as usize);
        let address = |spot: MemoryOffset<'_>| spot.memory.address + spot.offset;
        let host =
            |spot: MemoryOffset<'_>| spot.memory.host.wrapping_add(spot.offset as usize).cast();
        let copied = match (target.memory.host.is_null(), source.memory.host.is_null()) {
            // SAFETY: both ranges are within their memory, which lives until the batch is done.
            (true, true) => unsafe {
                sys::cuMemcpyDtoDAsync_v2(address(target), address(source), bytes, stream)
            },
            // SAFETY: the range of the GPU and that of the host are within memory that lives until the batch is done.
            (true, false) => unsafe {
                sys::cuMemcpyHtoDAsync_v2(address(target), host(source), bytes, stream)
            },
            // SAFETY: the range of the host and that of the GPU are within memory that lives until the batch is done.
            (false, _) => unsafe {
                sys::cuMemcpyDtoHAsync_v2(host(target), address(source), bytes, stream)
            },
        };
        copied.result().map_err(|error| failed("copy", error))
    }

    unsafe fn fill(&mut self, target: MemoryOffset<'_>, word: u32, bytes: u64) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()?;
        let (address, words) = (target.memory.address + target.offset, bytes as usize / 4);
        // SAFETY: the range is within its memory, and aligned, as the caller says.
        unsafe { sys::cuMemsetD32Async(address, word, words, self.device.stream) }
            .result()
            .map_err(|error| failed("fill memory", error))
    }

    unsafe fn dispatch(&mut self, shader: &Dispatch) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()?;
        // SAFETY: the context is that of this thread, and the memory that is used lives until the batch is done.
        unsafe { self.launch(shader) }
    }

    unsafe fn matmul(&mut self, product: &MatMul, shader: &Dispatch) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()?;
        if let Some(cublas) = &self.device.cublas {
            // SAFETY: the context is that of this thread; the matrices have these sizes, and live until the batch is done.
            match unsafe { cublas.enqueue(product, shader.tensors) } {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(cause) => {
                    self.device.library_failed(
                        "cuBLAS",
                        "multiply matrices",
                        &cublas.failed,
                        &cause,
                    )?;
                }
            }
        }
        // SAFETY: the context is that of this thread, and the memory that is used lives until the batch is done.
        unsafe { self.launch(shader) }
    }

    unsafe fn convolve(&mut self, convolution: &Convolution, shader: &Dispatch) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()?;
        if let Some(cudnn) = &self.device.cudnn {
            // SAFETY: the context is that of this thread; the tensors have these sizes, and live until the batch is done.
            match unsafe { cudnn.enqueue(convolution, shader.tensors) } {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(cause) => {
                    self.device.library_failed("cuDNN", "convolve", &cudnn.failed, &cause)?;
                }
            }
        }
        // SAFETY: the context is that of this thread, and the memory that is used lives until the batch is done.
        unsafe { self.launch(shader) }
    }

    unsafe fn mark(&mut self) -> BackendResult {
        let _entered = self.device.enter()?;
        self.stamp()
    }

    unsafe fn send(&mut self) -> BackendResult {
        let _entered = self.device.enter()?;
        // SAFETY: event and stream are this context's.
        unsafe { result::event::record(self.done, self.device.stream) }
            .map_err(|error| failed("send a batch", error))
    }

    fn wait(&mut self, limit: Duration) -> BackendResult<bool> {
        let _entered = self.device.enter()?;
        let since = Instant::now();
        loop {
            // SAFETY: the event is this context's.
            match unsafe { sys::cuEventQuery(self.done) } {
                CUresult::CUDA_SUCCESS => {
                    self.ended = now();
                    return Ok(true);
                }
                CUresult::CUDA_ERROR_NOT_READY => {}
                error => {
                    return Err(failed("wait for a batch", DriverError(error)));
                }
            }
            match since.elapsed() {
                waited if waited >= limit => return Ok(false),
                waited if waited < SPIN => thread::yield_now(),
                waited => thread::sleep(PAUSE.min(limit - waited)),
            }
        }
    }

    fn times(&mut self) -> BackendResult<Option<Vec<[i64; 2]>>> {
        let Some(taken) = self.taken.take() else { return Ok(None) };
        let _entered = self.device.enter()?;
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

    unsafe fn reset(&mut self) -> BackendResult {
        Ok(())
    }

    unsafe fn destroy(&mut self) {
        let Ok(_entered) = self.device.enter() else { return };
        for event in self.clock.drain(..).chain([self.done]) {
            // SAFETY: nothing uses it later. There is nothing to do about an error.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

/// Returns the milliseconds between two events, with a function of all drivers: cudarc calls that of CUDA 12.8.
///
/// # Safety
/// Both events are of the context of this thread.
unsafe fn elapsed(first: sys::CUevent, event: sys::CUevent) -> Result<f32, DriverError> {
    type Function = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
    // SAFETY: the driver is loaded, for good; its function has this type.
    let function = unsafe { sys::culib().get::<Function>(b"cuEventElapsedTime\0") };
    let function = function.map_err(|_| DriverError(CUresult::CUDA_ERROR_NOT_FOUND))?;
    let mut milliseconds = 0.0;
    // SAFETY: both events are of the context of this thread; it is a place for a number.
    unsafe { function(&raw mut milliseconds, first, event) }.result()?;
    Ok(milliseconds)
}
