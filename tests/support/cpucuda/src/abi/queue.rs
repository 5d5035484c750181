//! The driver's functions for streams and events, and the work of streams.

use super::{functions, put};
use crate::abi::memory::Region;
use crate::device::{DEVICES, Device, Event, current, of_context};
use crate::stream::Stream;
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUevent, CUfunction, CUresult, CUstream};
use std::ffi::{c_uchar, c_uint, c_void};
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Mutex};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;
/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIME: c_uint = 2;

/// Returns the block of the device that contains this range.
pub(super) fn on_device(address: CUdeviceptr, bytes: usize) -> Result<Arc<Region>, CUresult> {
    current().memory.find(address, bytes as u64).ok_or(INVALID)
}

/// Returns the page-locked block that contains this range, if there is one.
fn on_host<T>(address: *const T, bytes: usize) -> Option<Arc<Region>> {
    DEVICES.iter().find_map(|device| device.host.find(address.addr() as u64, bytes as u64))
}

/// Enqueues a copy.
///
/// # Safety
/// Both ranges stay valid until the copy is done; those of blocks in `held` do.
unsafe fn copy(stream: &Stream, to: usize, from: usize, bytes: usize, held: Vec<Arc<Region>>) {
    stream.run(move || {
        // SAFETY: both ranges are valid, since their blocks are held or the caller keeps them. Races are those of the program.
        unsafe { (from as *const u8).copy_to(to as *mut u8, bytes) };
        drop(held);
        Ok(())
    });
}

/// Enqueues a fill with a value of any size.
fn fill<T: Copy + Send + 'static>(
    stream: CUstream,
    to: CUdeviceptr,
    value: T,
    count: usize,
) -> Result<(), CUresult> {
    let size = size_of::<T>();
    let stream = current().stream(stream)?;
    if !to.is_multiple_of(size as u64) {
        return Err(INVALID);
    }
    if count == 0 {
        return Ok(());
    }
    let held = on_device(to, count.checked_mul(size).ok_or(INVALID)?)?;
    stream.run(move || {
        // SAFETY: the range is aligned and part of the block, which is held. Races are those of the program.
        unsafe { std::slice::from_raw_parts_mut(to as *mut T, count) }.fill(value);
        drop(held);
        Ok(())
    });
    Ok(())
}

/// Returns the blocks to which words of the arguments point.
fn used(arguments: &[Vec<u128>]) -> Vec<Arc<Region>> {
    let words = arguments.iter().flatten().flat_map(|&word| [word as u64, (word >> 64) as u64]);
    let device = current();
    words
        .filter_map(|word| device.memory.find(word, 0).or_else(|| device.host.find(word, 0)))
        .collect()
}

functions! {
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize) Context {
        let block = on_device(to, bytes)?;
        // SAFETY: the caller has `bytes` bytes, and the block is held.
        current().reach(|| unsafe { from.cast::<u8>().copy_to(to as *mut u8, bytes) });
        drop(block);
        Ok(())
    }

    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize) Context {
        let block = on_device(from, bytes)?;
        // SAFETY: the caller has space for `bytes` bytes, and the block is held.
        current().reach(|| unsafe { (from as *const u8).copy_to(to.cast(), bytes) });
        drop(block);
        Ok(())
    }

    cuMemcpyHtoDAsync_v2(
        to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream
    ) Context {
        let stream = current().stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        let block = on_device(to, bytes)?;
        if from.is_null() {
            return Err(INVALID);
        }
        if let Some(host) = on_host(from, bytes) {
            // SAFETY: both blocks are held.
            unsafe { copy(&stream, to as usize, from.addr(), bytes, vec![block, host]) };
            return Ok(());
        }
        // CUDA copies memory that is not page-locked before it returns.
        // SAFETY: the caller has `bytes` bytes.
        let staged = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
        stream.run(move || {
            // SAFETY: the range is part of the block, which is held.
            unsafe { staged.as_ptr().copy_to(to as *mut u8, bytes) };
            drop(block);
            Ok(())
        });
        Ok(())
    }

    cuMemcpyDtoHAsync_v2(
        to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream
    ) ContextAfter {
        let stream = current().stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        let block = on_device(from, bytes)?;
        if to.is_null() {
            return Err(INVALID);
        }
        let host = on_host(to, bytes);
        let is_locked = host.is_some();
        let held = host.into_iter().chain([block]).collect();
        // SAFETY: the blocks are held; without a block of the host this call ends after the copy.
        unsafe { copy(&stream, to.expose_provenance(), from as usize, bytes, held) };
        if !is_locked {
            stream.synchronize();
        }
        Ok(())
    }

    cuMemcpyDtoDAsync_v2(
        to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream
    ) Context {
        let stream = current().stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        let held = vec![on_device(to, bytes)?, on_device(from, bytes)?];
        // SAFETY: both blocks are held.
        unsafe { copy(&stream, to as usize, from as usize, bytes, held) };
        Ok(())
    }

    cuMemcpyPeerAsync(
        to: CUdeviceptr, to_context: CUcontext,
        from: CUdeviceptr, from_context: CUcontext,
        bytes: usize, stream: CUstream
    ) Context {
        let stream = current().stream(stream)?;
        let [target, source] = [of_context(to_context.addr())?, of_context(from_context.addr())?];
        if bytes == 0 {
            return Ok(());
        }
        let find = |device: &Device, address| device.memory.find(address, bytes as u64).ok_or(INVALID);
        let held = [find(target, to)?, find(source, from)?];
        stream.run(move || {
            // SAFETY: both ranges are part of their blocks, which are held. Races are those of the program.
            let copy = || unsafe { (from as *const u8).copy_to(to as *mut u8, bytes) };
            target.reach(|| source.reach(copy));
            drop(held);
            Ok(())
        });
        Ok(())
    }

    cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream) Context {
        fill(stream, to, value, count)
    }

    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) Context {
        fill(stream, to, value, count)
    }

    cuStreamCreate(stream: *mut CUstream, flags: c_uint) Context {
        if flags > 1 {
            return Err(INVALID);
        }
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(stream, without_provenance_mut(current().streams.insert(Stream::new(current())))) }
    }

    cuStreamDestroy_v2(stream: CUstream) Context {
        current().streams.remove(stream).map(drop)
    }

    cuStreamSynchronize(stream: CUstream) ContextAfter {
        current().stream(stream)?.synchronize();
        Ok(())
    }

    cuStreamQuery(stream: CUstream) ContextAfter {
        if current().stream(stream)?.is_idle() { Ok(()) } else { Err(NOT_READY) }
    }

    cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: c_uint) Context {
        let stream = current().stream(stream)?;
        if let Some(record) = current().events.get(event)?.last() {
            stream.wait(record);
        }
        Ok(())
    }

    cuEventCreate(event: *mut CUevent, flags: c_uint) Context {
        if flags > 7 {
            return Err(INVALID);
        }
        let new = Event { recorded: Mutex::default(), is_timed: flags & NO_TIME == 0 };
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(event, without_provenance_mut(current().events.insert(new))) }
    }

    cuEventDestroy_v2(event: CUevent) Context {
        current().events.remove(event).map(drop)
    }

    cuEventRecord(event: CUevent, stream: CUstream) Context {
        let event = current().events.get(event)?;
        let stream = current().stream(stream)?;
        *event.recorded.lock().unwrap() = Some(stream.record());
        Ok(())
    }

    cuEventQuery(event: CUevent) ContextAfter {
        let record = current().events.get(event)?.last();
        let is_complete = record.is_none_or(|record| record.is_complete());
        if is_complete { Ok(()) } else { Err(NOT_READY) }
    }

    cuEventSynchronize(event: CUevent) ContextAfter {
        if let Some(record) = current().events.get(event)?.last() {
            record.wait();
        }
        Ok(())
    }

    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) Context {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { elapsed(milliseconds, start, end) }
    }

    cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent) Context {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { elapsed(milliseconds, start, end) }
    }

    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void
    ) Context {
        let function = current().functions.get(function)?;
        let stream = current().stream(stream)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let threads = block.iter().map(|&size| u64::from(size)).product::<u64>();
        let is_too_large = grid_x > i32::MAX as u32 || grid[1..].iter().any(|&size| size > 0xFFFF);
        if grid.contains(&0) || is_too_large || threads == 0 || threads > 1024 || block_z > 64 {
            return Err(INVALID);
        }
        if shared != 0 || !extra.is_null() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if arguments.is_null() && function.has_arguments() {
            return Err(INVALID);
        }
        // SAFETY: the caller has a pointer for each parameter.
        let mut arguments = unsafe { function.copy_arguments(arguments.cast_const().cast()) };
        let held = used(&arguments);
        stream.run(move || {
            // SAFETY: the blocks to which the arguments point are held; the rest is the program's matter, as on a GPU.
            let result = unsafe { function.run(grid, block, &mut arguments) };
            drop(held);
            result
        });
        Ok(())
    }
}

/// # Safety
/// The pointer is null, or a number may be written there.
unsafe fn elapsed(to: *mut f32, start: CUevent, end: CUevent) -> Result<(), CUresult> {
    let mut times = Vec::new();
    for event in [start, end] {
        let event = current().events.get(event)?;
        let record = event.last().filter(|_| event.is_timed);
        times.push(record.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?);
    }
    if !times.iter().all(|record| record.is_complete()) {
        return Err(NOT_READY);
    }
    let [Some(start), Some(end)] = [times[0].time(), times[1].time()] else {
        return Err(CUresult::CUDA_ERROR_UNKNOWN);
    };
    let seconds = match end.checked_duration_since(start) {
        Some(after) => after.as_secs_f32(),
        None => -(start - end).as_secs_f32(),
    };
    // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
    unsafe { put(to, seconds * 1e3) }
}
