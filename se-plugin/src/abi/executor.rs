//! The callbacks of devices.

use super::event::EventState;
use super::host_buf::{HostBuf, host_size, lent};
use super::host_callback::HostCallback;
use super::host_memory::{HostAllocator, Ordinary};
use super::host_ptr::{HostSource, HostTarget};
use super::platform::refused;
use super::state::{
    DeviceState, StreamState, TimerState, address, borrow, device as device_of, into_handle,
    into_own_handle, shared_device, take, take_own,
};
use super::versions::{Versioned as _, field, fill, read};
use super::work::Waits as _;
use crate::device::Device;
use crate::health::Health;
use crate::memory::DevicePtr;
use crate::stream::{EventStatus, Pattern, Stream as _, StreamOptions};
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::sync::Arc;
use tf_fs_sys::{
    SE_EVENT_COMPLETE, SE_EVENT_PENDING, SE_EventStatus, SE_StatusCallbackFn, SP_AllocatorStats,
    SP_Device, SP_DeviceMemoryBase, SP_Event, SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE,
    SP_Stream, SP_StreamExecutor, SP_StreamExecutorWithStreamOptions, SP_StreamOptions, SP_Timer,
    TF_Bool, TF_Status,
};
use tf_plugin_core::__private::boundary::{self, catch, guard, guard_quiet};
use tf_plugin_core::{Code, Error, Result, ensure};

/// Requests of up to so many bytes TensorFlow repeats forever if they get nothing, when it divides
/// regions itself: it requests nine tenths, rounded up to a multiple of 256, which is as much again.
const REPEATED_FOR_EVER: u64 = 2304;

/// All callbacks: each is there in every release.
pub(super) const fn table<D: Device>() -> SP_StreamExecutor {
    SP_StreamExecutor {
        struct_size: SP_StreamExecutor::STRUCT_SIZE,
        ext: ptr::null_mut(),
        allocate: Some(allocate::<D>),
        deallocate: Some(deallocate::<D>),
        host_memory_allocate: Some(host_memory_allocate::<D>),
        host_memory_deallocate: Some(host_memory_deallocate::<D>),
        unified_memory_allocate: Some(unified_memory_allocate),
        unified_memory_deallocate: Some(unified_memory_deallocate),
        get_allocator_stats: Some(get_allocator_stats::<D>),
        device_memory_usage: Some(device_memory_usage::<D>),
        create_stream: Some(create_stream::<D>),
        destroy_stream: Some(destroy_stream::<D>),
        create_stream_dependency: Some(create_stream_dependency::<D>),
        get_stream_status: Some(get_stream_status::<D>),
        create_event: Some(create_event::<D>),
        destroy_event: Some(destroy_event::<D>),
        get_event_status: Some(get_event_status::<D>),
        record_event: Some(record_event::<D>),
        wait_for_event: Some(wait_for_event::<D>),
        create_timer: Some(create_timer::<D>),
        destroy_timer: Some(destroy_timer::<D>),
        start_timer: Some(start_timer::<D>),
        stop_timer: Some(stop_timer::<D>),
        memcpy_dtoh: Some(memcpy_dtoh::<D>),
        memcpy_htod: Some(memcpy_htod::<D>),
        memcpy_dtod: Some(memcpy_dtod::<D>),
        sync_memcpy_dtoh: Some(sync_memcpy_dtoh::<D>),
        sync_memcpy_htod: Some(sync_memcpy_htod::<D>),
        sync_memcpy_dtod: Some(sync_memcpy_dtod::<D>),
        block_host_for_event: Some(block_host_for_event::<D>),
        block_host_until_done: Some(block_host_until_done::<D>),
        synchronize_all_activity: Some(synchronize_all_activity::<D>),
        mem_zero: Some(mem_zero::<D>),
        memset: Some(memset::<D>),
        memset32: Some(memset32::<D>),
        host_callback: Some(host_callback::<D>),
    }
}

/// Adds the callback that TensorFlow has from 2.22 on, if there is room for it.
///
/// # Safety
/// `executor` is a struct of the host's of which `room` bytes can be written, and which [`table`] has been put into.
pub(super) unsafe fn add_stream_options<D: Device>(executor: *mut SP_StreamExecutor, room: usize) {
    const SIZE: usize = SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE;
    if room < SIZE {
        return;
    }
    let longer = executor.cast::<SP_StreamExecutorWithStreamOptions>();
    // SAFETY: both fields are within the room.
    unsafe {
        (&raw mut (*longer).create_stream_with_options)
            .write(Some(create_stream_with_options::<D>));
        (&raw mut (*longer).executor.struct_size).write(SIZE);
    }
}

/// An error for a handle that is null, since an earlier `create_*` failed.
#[cold]
fn null(what: &str) -> Error {
    Error::failed_precondition(format!("TensorFlow passed no {what}, because it could not be made"))
}

/// The stream of a handle.
///
/// # Safety
/// `stream` is null or from `create_stream` of the same `D`, and not destroyed.
unsafe fn stream_of<'a, D: Device>(stream: SP_Stream) -> Result<&'a StreamState<D>> {
    // SAFETY: `stream` is null, or a live handle from `create_stream` for this `D`, which points to a
    // `StreamState<D>`.
    unsafe { borrow::<StreamState<D>, _>(stream) }.ok_or_else(|| null("stream"))
}

/// Does what enqueues work, unless the device has failed. An error goes to the host where it takes it;
/// where it would abort the process, the device keeps it and reports it later.
#[inline]
fn enqueue<'a, D: Device>(
    op: &'static str,
    device: &'a DeviceState<D>,
    body: impl FnOnce(&mut Option<&'a StreamState<D>>) -> Result<()>,
) -> Result<()> {
    let mut stream = None;
    if device.takes_errors {
        device.health.check()?;
        return body(&mut stream);
    }
    if let Err(error) = body(&mut stream) {
        stream.map_or(&device.health, StreamState::health).note(op, &error);
    }
    Ok(())
}

// Memory.

unsafe extern "C" fn allocate<D: Device>(
    device: *const SP_Device,
    size: u64,
    _memory_space: i64,
    memory: *mut SP_DeviceMemoryBase,
) {
    let give = |address: Option<DevicePtr>| {
        let memory_base = SP_DeviceMemoryBase {
            opaque: address.map_or(ptr::null_mut(), |address| {
                ptr::without_provenance_mut(address.address() as usize)
            }),
            size: if address.is_some() { size } else { 0 },
            ..SP_DeviceMemoryBase::default()
        };
        // SAFETY: the host passes a struct with its size.
        let filled = unsafe { fill(memory, &memory_base) };
        filled.map(drop).map_err(refused)
    };
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        if size == 0 {
            return give(None);
        }
        device.set_aside();
        match catch(ALLOCATE, || device.device.allocate(size)) {
            Ok(address) if address.is_usable() => give(Some(address)),
            refused => give(refuse(device, size, refused)),
        }
    };
    guard_quiet(ALLOCATE, || drop(give(None)), body);
}

const ALLOCATE: &str = "allocate";
const DEALLOCATE: &str = "deallocate";

/// What the host gets when there is no memory.
#[cold]
fn refuse<D: Device>(
    device: &DeviceState<D>,
    size: u64,
    answer: Result<DevicePtr>,
) -> Option<DevicePtr> {
    let error = match answer {
        Ok(address) => {
            let freed = catch(DEALLOCATE, || device.device.deallocate(address));
            if let Err(error) = freed {
                boundary::discard(DEALLOCATE, error);
            }
            Error::internal(format!(
                "{address:?} is not an address of a device's; answer a multiple of {}",
                DevicePtr::ALIGNMENT
            ))
        }
        Err(error) => error,
    };
    if error.code() == Code::ResourceExhausted {
        log::debug!("{size} bytes were refused: {error:#}");
        if let Some(piece) = device.reserve().and_then(|reserve| reserve.allocate(size)) {
            return Some(piece);
        }
    } else {
        device.health.note(ALLOCATE, &error);
    }
    if !device.host_insists || size > REPEATED_FOR_EVER {
        return None;
    }
    boundary::log_error(&format_args!(
        "the memory of the device is used up; work that needs more fails: {error:#}"
    ));
    Some(device.refused())
}

unsafe extern "C" fn deallocate<D: Device>(
    device: *const SP_Device,
    memory: *mut SP_DeviceMemoryBase,
) {
    let body = || {
        // SAFETY: the host passes a device, and a struct with its size.
        let (device, address) =
            unsafe { (device_of::<D>(device)?, field!(memory => SP_DeviceMemoryBase.opaque)) };
        match address.and_then(|address| DevicePtr::new(address.addr() as u64)) {
            Some(address) if device.takes_back(address) => Ok(()),
            Some(address) => device.device.deallocate(address),
            None => Ok(()),
        }
    };
    guard_quiet(DEALLOCATE, || (), body);
}

/// The one allocator of host memory that there is for a device, from when it was opened on: what it has
/// allocated no other kind may free.
fn host_allocator<D: Device>(device: &DeviceState<D>) -> Result<&dyn HostAllocator> {
    match device.device.host_allocator() {
        Some(own) if device.has_host_allocator => Ok(own),
        None if device.has_host_allocator => {
            Err(Error::internal("the device has no host allocator any more"))
        }
        _ => Ok(&Ordinary),
    }
}

unsafe extern "C" fn host_memory_allocate<D: Device>(
    device: *const SP_Device,
    size: u64,
) -> *mut c_void {
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        let bytes = usize::try_from(size).map_err(Error::resource_exhausted)?;
        if bytes == 0 {
            return Ok(ptr::null_mut());
        }
        let memory = host_allocator(device)?.allocate(bytes)?;
        Ok(memory.as_ptr().cast())
    };
    guard_quiet("host_memory_allocate", ptr::null_mut, body)
}

unsafe extern "C" fn host_memory_deallocate<D: Device>(
    device: *const SP_Device,
    memory: *mut c_void,
) {
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        let Some(memory) = NonNull::new(memory.cast()) else { return Ok(()) };
        let allocator = host_allocator(device)?;
        // SAFETY: the host frees once what `host_memory_allocate` answered, which was from this allocator
        // or from another of the device's.
        unsafe { allocator.deallocate(memory) };
        Ok(())
    };
    guard_quiet("host_memory_deallocate", || (), body);
}

unsafe extern "C" fn unified_memory_allocate(_: *const SP_Device, _: u64) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn unified_memory_deallocate(_: *const SP_Device, _: *mut c_void) {}

unsafe extern "C" fn get_allocator_stats<D: Device>(
    device: *const SP_Device,
    stats: *mut SP_AllocatorStats,
) -> TF_Bool {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let body = || {
        // SAFETY: the host passes a device.
        let Some(known) = (unsafe { device_of::<D>(device)? }).device.allocator_stats() else {
            return Ok(0);
        };
        let with = SP_AllocatorStats {
            struct_size: 0,
            num_allocs: signed(known.allocations),
            bytes_in_use: signed(known.in_use),
            peak_bytes_in_use: signed(known.peak_in_use),
            largest_alloc_size: signed(known.largest_allocation),
            has_bytes_limit: known.limit.is_some().into(),
            bytes_limit: signed(known.limit.unwrap_or(0)),
            bytes_reserved: signed(known.reserved),
            peak_bytes_reserved: signed(known.peak_reserved),
            has_bytes_reservable_limit: known.reservable_limit.is_some().into(),
            bytes_reservable_limit: signed(known.reservable_limit.unwrap_or(0)),
            largest_free_block_bytes: signed(known.largest_free_block),
        };
        // SAFETY: the host passes a struct with its size.
        unsafe { fill(stats, &with) }.map_err(refused)?;
        Ok(1)
    };
    guard_quiet("get_allocator_stats", || 0, body)
}

unsafe extern "C" fn device_memory_usage<D: Device>(
    device: *const SP_Device,
    free: *mut i64,
    total: *mut i64,
) -> TF_Bool {
    let body = || {
        // SAFETY: the host passes a device.
        let usage = unsafe { device_of::<D>(device)? }.memory_usage();
        for (place, bytes) in [(free, usage.free), (total, usage.total)] {
            // SAFETY: null or a number of the host's.
            if let Some(place) = unsafe { place.as_mut() } {
                *place = i64::try_from(bytes).unwrap_or(i64::MAX);
            }
        }
        Ok(1)
    };
    guard_quiet("device_memory_usage", || 0, body)
}

// Streams.

unsafe extern "C" fn create_stream<D: Device>(
    device: *const SP_Device,
    stream: *mut SP_Stream,
    status: *mut TF_Status,
) {
    const OP: &str = "create_stream";
    // SAFETY: the host passes a device, a handle's place and a status.
    unsafe {
        let body = || make_stream::<D>(OP, device, stream, || Ok(None));
        guard(OP, status, (), body);
    }
}

unsafe extern "C" fn create_stream_with_options<D: Device>(
    device: *const SP_Device,
    options: *const SP_StreamOptions,
    stream: *mut SP_Stream,
    status: *mut TF_Status,
) {
    const OP: &str = "create_stream_with_options";
    // SAFETY: the host passes a device, a handle's place, a status, and options with their size or none.
    unsafe {
        let options = || {
            if options.is_null() {
                return Ok(None);
            }
            let options = read(options).map_err(refused)?;
            let is_there = options.struct_size >= SP_StreamOptions::STRUCT_SIZE;
            let priority = (is_there && options.has_priority != 0).then_some(options.priority);
            Ok(Some(StreamOptions { priority }))
        };
        let body = || make_stream::<D>(OP, device, stream, options);
        guard(OP, status, (), body);
    }
}

/// Makes a stream, with options if there are any.
///
/// # Safety
/// `device` is one of `D`; `stream` is null or a handle's place.
unsafe fn make_stream<D: Device>(
    op: &'static str,
    device: *const SP_Device,
    stream: *mut SP_Stream,
    options: impl FnOnce() -> Result<Option<StreamOptions>>,
) -> Result<()> {
    // SAFETY: `stream` is null, or the place that the host passes for the handle.
    let place = unsafe { stream.as_mut() }.ok_or_else(|| null("place for a stream"))?;
    *place = ptr::null_mut();
    // SAFETY: `device` is null, or a struct that `create_device` filled for this `D`.
    let device = unsafe { shared_device::<D>(device)? };
    let options = options()?;
    // Without a stream TensorFlow up to 2.16 would abort at the first copy, and later ones would not
    // say why there is none. One that reports the failure wherever it is used does both better.
    let made = catch(op, || match &options {
        None => device.device.create_stream(),
        Some(options) => device.device.create_stream_with_options(options),
    });
    let made = made.inspect_err(|error| device.health.note(op, error));
    *place = into_handle(Arc::new(StreamState::new(made.ok(), device)));
    Ok(())
}

unsafe extern "C" fn destroy_stream<D: Device>(_: *const SP_Device, stream: SP_Stream) {
    let body = || {
        // SAFETY: the host destroys a stream once.
        let Some(stream) = (unsafe { take::<StreamState<D>, _>(stream) }) else { return Ok(()) };
        if let Err(error) = stream.drain("destroy_stream") {
            stream.health().note("destroy_stream", &error);
        }
        Ok(())
    };
    guard_quiet("destroy_stream", || (), body);
}

unsafe extern "C" fn create_stream_dependency<D: Device>(
    device: *const SP_Device,
    dependent: SP_Stream,
    other: SP_Stream,
    status: *mut TF_Status,
) {
    const OP: &str = "create_stream_dependency";
    let body = || {
        // SAFETY: the host passes a device and two streams.
        let device = unsafe { device_of::<D>(device)? };
        enqueue(OP, device, |used| {
            // SAFETY: `dependent` and `other` are null or live handles from `create_stream` for this `D`.
            let (dependent, other) =
                unsafe { (stream_of::<D>(dependent)?, stream_of::<D>(other)?) };
            *used = Some(dependent);
            catch(OP, || dependent.wait_for(other))
        })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn get_stream_status<D: Device>(
    _: *const SP_Device,
    stream: SP_Stream,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a stream.
        let stream = unsafe { stream_of::<D>(stream)? };
        stream.author()?.status()?;
        stream.check()
    };
    // SAFETY: the host passes a status.
    unsafe { guard("get_stream_status", status, (), body) };
}

// Events.

unsafe extern "C" fn create_event<D: Device>(
    device: *const SP_Device,
    event: *mut SP_Event,
    status: *mut TF_Status,
) {
    const OP: &str = "create_event";
    let body = || {
        // SAFETY: null or a handle's place.
        let place = unsafe { event.as_mut() }.ok_or_else(|| null("place for an event"))?;
        *place = ptr::null_mut();
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        // An error would abort the process; an event that waits instead does as well.
        let event = catch(OP, || device.device.create_event()).map_err(|error| {
            boundary::log_error(&format_args!(
                "`{OP}` failed, so the stream is waited for instead: {error:#}"
            ));
            boundary::discard(OP, error);
        });
        *place = into_own_handle(EventState::<D>::new(event.ok()));
        Ok(())
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn destroy_event<D: Device>(_: *const SP_Device, event: SP_Event) {
    let body = || {
        // SAFETY: the host destroys an event once.
        drop(unsafe { take_own::<EventState<D>, _>(event) });
        Ok(())
    };
    guard_quiet("destroy_event", || (), body);
}

unsafe extern "C" fn get_event_status<D: Device>(
    device: *const SP_Device,
    event: SP_Event,
) -> SE_EventStatus {
    let body = || {
        // SAFETY: the host passes a device and an event.
        let (device, event) =
            unsafe { (device_of::<D>(device)?, borrow::<EventState<D>, _>(event)) };
        Ok(match event.map(|event| event.status(device)) {
            Some(EventStatus::Pending) => SE_EVENT_PENDING,
            Some(EventStatus::Complete) | None => SE_EVENT_COMPLETE,
        })
    };
    // Any other answer would abort the process.
    guard_quiet("get_event_status", || SE_EVENT_COMPLETE, body)
}

unsafe extern "C" fn record_event<D: Device>(
    _: *const SP_Device,
    stream: SP_Stream,
    event: SP_Event,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a stream and an event, which are handles.
        unsafe {
            let stream = NonNull::new(stream.cast()).ok_or_else(|| null("stream"))?;
            let event = borrow::<EventState<D>, _>(event).ok_or_else(|| null("event"))?;
            event.record(stream)
        }
    };
    // SAFETY: the host passes a status.
    unsafe { guard("record_event", status, (), body) };
}

unsafe extern "C" fn wait_for_event<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    event: SP_Event,
    status: *mut TF_Status,
) {
    const OP: &str = "wait_for_event";
    let body = || {
        // SAFETY: the host passes a device, a stream and an event.
        let device = unsafe { device_of::<D>(device)? };
        enqueue(OP, device, |used| {
            // SAFETY: `stream` and `event` are null or live handles from `create_stream` and `create_event` for
            // this `D`.
            let (stream, event) =
                unsafe { (stream_of::<D>(stream)?, borrow::<EventState<D>, _>(event)) };
            *used = Some(stream);
            let event = event.ok_or_else(|| null("event"))?;
            if let Some(event) = &event.event {
                catch(OP, || stream.author()?.wait_event(event))?;
            }
            stream.copies.add_all(event.copies.open());
            Ok(())
        })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn block_host_for_event<D: Device>(
    _: *const SP_Device,
    event: SP_Event,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes an event.
    let body = || match unsafe { borrow::<EventState<D>, _>(event) } {
        Some(event) => event.wait(),
        None => Ok(()),
    };
    // SAFETY: the host passes a status.
    unsafe { guard("block_host_for_event", status, (), body) };
}

unsafe extern "C" fn block_host_until_done<D: Device>(
    _: *const SP_Device,
    stream: SP_Stream,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a stream; null once it could not be made.
    let body = || match unsafe { borrow::<StreamState<D>, _>(stream) } {
        Some(stream) => {
            stream.drain("block_host_until_done")?;
            stream.check()
        }
        None => Ok(()),
    };
    // SAFETY: the host passes a status.
    unsafe { guard("block_host_until_done", status, (), body) };
}

unsafe extern "C" fn synchronize_all_activity<D: Device>(
    device: *const SP_Device,
    status: *mut TF_Status,
) {
    const OP: &str = "synchronize_all_activity";
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        let result = catch(OP, || device.device.synchronize());
        device.copies.wait();
        result?;
        device.health.check()
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

// Timers.

unsafe extern "C" fn create_timer<D: Device>(
    device: *const SP_Device,
    timer: *mut SP_Timer,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: null or a handle's place.
        let place = unsafe { timer.as_mut() }.ok_or_else(|| null("place for a timer"))?;
        *place = ptr::null_mut();
        // SAFETY: the host passes a device.
        let timer = unsafe { device_of::<D>(device)? }.device.create_timer()?;
        *place = into_own_handle(TimerState::<D>(timer));
        Ok(())
    };
    // SAFETY: the host passes a status.
    unsafe { guard("create_timer", status, (), body) };
}

unsafe extern "C" fn destroy_timer<D: Device>(_: *const SP_Device, timer: SP_Timer) {
    let body = || {
        // SAFETY: the host destroys a timer once.
        drop(unsafe { take_own::<TimerState<D>, _>(timer) });
        Ok(())
    };
    guard_quiet("destroy_timer", || (), body);
}

unsafe extern "C" fn start_timer<D: Device>(
    _: *const SP_Device,
    stream: SP_Stream,
    timer: SP_Timer,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a stream and a timer.
        let (stream, timer) =
            unsafe { (stream_of::<D>(stream)?, borrow::<TimerState<D>, _>(timer)) };
        timer.ok_or_else(|| null("timer"))?.0.start(stream.author()?)
    };
    // SAFETY: the host passes a status.
    unsafe { guard("start_timer", status, (), body) };
}

unsafe extern "C" fn stop_timer<D: Device>(
    _: *const SP_Device,
    stream: SP_Stream,
    timer: SP_Timer,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a stream and a timer.
        let (stream, timer) =
            unsafe { (stream_of::<D>(stream)?, borrow::<TimerState<D>, _>(timer)) };
        timer.ok_or_else(|| null("timer"))?.0.stop(stream.author()?)
    };
    // SAFETY: the host passes a status.
    unsafe { guard("stop_timer", status, (), body) };
}

pub(super) unsafe extern "C" fn nanoseconds<D: Device>(timer: SP_Timer) -> u64 {
    // SAFETY: the host passes a timer.
    let body = || match unsafe { borrow::<TimerState<D>, _>(timer) } {
        Some(timer) => Ok(u64::try_from(timer.0.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        None => Ok(0),
    };
    guard_quiet("nanoseconds", || 0, body)
}

// Copies and fills.

unsafe extern "C" fn memcpy_dtoh<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut c_void,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    const OP: &str = "memcpy_dtoh";
    let body = || {
        // SAFETY: the host passes a device, a stream and structs with their sizes. It keeps `size` bytes at
        // `target` until an event behind the copy is complete, which waits for the token.
        unsafe {
            // Nobody looks behind this copy: an error is the only way to prevent wrong numbers, even where
            // it aborts the process.
            device_of::<D>(device)?.health.check()?;
            let stream = stream_of::<D>(stream)?;
            if size == 0 {
                return Ok(());
            }
            let source = address(source)?;
            ensure!(
                !target.is_null(),
                Error::invalid_argument("TensorFlow passed no memory to copy to")
            );
            let len = host_size(size)?;
            let author = stream.author()?;
            stream.begin_copy(OP, |token| {
                author.copy_to_host(HostTarget::new(target.cast(), len, token), source)
            })
        }
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn memcpy_htod<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    source: *const c_void,
    size: u64,
    status: *mut TF_Status,
) {
    const OP: &str = "memcpy_htod";
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        enqueue(OP, device, |used| {
            // SAFETY: the host passes a stream and structs with their sizes. It keeps `size` bytes at
            // `source` until an event behind the copy is complete, which waits for the token.
            unsafe {
                let stream = stream_of::<D>(stream)?;
                *used = Some(stream);
                if size == 0 {
                    return Ok(());
                }
                let target = address(target)?;
                ensure!(
                    !source.is_null(),
                    Error::invalid_argument("TensorFlow passed no memory to copy from")
                );
                let len = host_size(size)?;
                let author = stream.author()?;
                catch(OP, || stream.wait_for_work())?;
                stream.begin_copy(OP, |token| {
                    author.copy_to_device(target, HostSource::new(source.cast(), len, token))
                })
            }
        })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn memcpy_dtod<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    const OP: &str = "memcpy_dtod";
    let body = || {
        // SAFETY: the host passes a device.
        let device = unsafe { device_of::<D>(device)? };
        enqueue(OP, device, |used| {
            // SAFETY: the host passes a stream and structs with their sizes.
            let (stream, addresses) =
                unsafe { (stream_of::<D>(stream)?, [address(target), address(source)]) };
            *used = Some(stream);
            if size == 0 {
                return Ok(());
            }
            let [target, source] = addresses;
            let (target, source) = (target?, source?);
            catch(OP, || stream.author()?.copy_on_device(target, source, size))
        })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(OP, status, (), body) };
}

unsafe extern "C" fn sync_memcpy_dtoh<D: Device>(
    device: *const SP_Device,
    target: *mut c_void,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a device, a struct with its size, and `size` bytes of its own that stay, and that
        // nobody else uses, during the call.
        unsafe {
            let device = device_of::<D>(device)?;
            if size == 0 {
                return Ok(());
            }
            let source = address(source)?;
            device.device.copy_to_host(HostBuf::of_host(target, size)?, source)
        }
    };
    // SAFETY: the host passes a status.
    unsafe { guard("sync_memcpy_dtoh", status, (), body) };
}

unsafe extern "C" fn sync_memcpy_htod<D: Device>(
    device: *const SP_Device,
    target: *mut SP_DeviceMemoryBase,
    source: *const c_void,
    size: u64,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a device, a struct with its size, and `size` bytes of its own that stay, and that
        // nobody writes to, during the call.
        unsafe {
            let device = device_of::<D>(device)?;
            if size == 0 {
                return Ok(());
            }
            let target = address(target)?;
            ensure!(
                !source.is_null(),
                Error::invalid_argument("TensorFlow passed no memory to copy from")
            );
            device.device.copy_to_device(target, lent(source, host_size(size)?)?)
        }
    };
    // SAFETY: the host passes a status.
    unsafe { guard("sync_memcpy_htod", status, (), body) };
}

unsafe extern "C" fn sync_memcpy_dtod<D: Device>(
    device: *const SP_Device,
    target: *mut SP_DeviceMemoryBase,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes a device, and structs with their sizes.
        let device = unsafe { device_of::<D>(device)? };
        if size == 0 {
            return Ok(());
        }
        // SAFETY: `target` and `source` are null, or structs with as many readable bytes as their `struct_size`
        // says.
        let (target, source) = unsafe { (address(target)?, address(source)?) };
        device.device.copy_on_device(target, source, size)
    };
    // SAFETY: the host passes a status.
    unsafe { guard("sync_memcpy_dtod", status, (), body) };
}

/// The body of the three fills.
///
/// # Safety
/// The host passes a device, a stream, a struct with its size, and a status.
unsafe fn fill_memory<D: Device>(
    op: &'static str,
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    pattern: Pattern,
    size: u64,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: `device` is null, or a struct that `create_device` filled for this `D`.
        let device = unsafe { device_of::<D>(device)? };
        enqueue(op, device, |used| {
            // SAFETY: `stream` is null or a live handle from `create_stream` for this `D`; `target` is null or
            // a struct of `struct_size` bytes.
            let (stream, target) = unsafe { (stream_of::<D>(stream)?, address(target)) };
            *used = Some(stream);
            if size == 0 {
                return Ok(());
            }
            if matches!(pattern, Pattern::Word(_)) {
                ensure!(
                    size.is_multiple_of(4),
                    Error::invalid_argument(format!(
                        "{size} bytes are not a multiple of a pattern of 4"
                    ))
                );
            }
            let target = target?;
            catch(op, || stream.author()?.fill(target, pattern, size)).inspect_err(|error| {
                // TensorFlow does not look at the status and goes on with whatever is in the memory.
                // Where `enqueue` returns no error, it keeps this one.
                if device.takes_errors {
                    stream.health().note(op, error);
                }
            })
        })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(op, status, (), body) };
}

unsafe extern "C" fn mem_zero<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host keeps the promises of the header.
    unsafe { fill_memory::<D>("mem_zero", device, stream, target, Pattern::Zero, size, status) };
}

unsafe extern "C" fn memset<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    pattern: u8,
    size: u64,
    status: *mut TF_Status,
) {
    let pattern = Pattern::Byte(pattern);
    // SAFETY: the host keeps the promises of the header.
    unsafe { fill_memory::<D>("memset", device, stream, target, pattern, size, status) };
}

unsafe extern "C" fn memset32<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    pattern: u32,
    size: u64,
    status: *mut TF_Status,
) {
    let pattern = Pattern::Word(pattern);
    // SAFETY: the host keeps the promises of the header.
    unsafe { fill_memory::<D>("memset32", device, stream, target, pattern, size, status) };
}

// Callbacks.

unsafe extern "C" fn host_callback<D: Device>(
    device: *const SP_Device,
    stream: SP_Stream,
    function: SE_StatusCallbackFn,
    argument: *mut c_void,
) -> TF_Bool {
    const OP: &str = "host_callback";
    let Some(function) = function else { return 0 };
    let body = || {
        // SAFETY: the host passes a stream.
        let stream = unsafe { stream_of::<D>(stream) };
        let health = match &stream {
            Ok(stream) => stream.health().clone(),
            // SAFETY: the host passes a device.
            Err(_) => unsafe { device_of::<D>(device) }
                .map_or_else(|_| Health::default(), |device| device.health.clone()),
        };
        // SAFETY: the host's function is called once with its argument, on any thread. Whatever goes
        // wrong, the value makes the call, which frees the argument; so the answer is always "true".
        let callback = unsafe { HostCallback::of_host(function, argument, health) };
        match stream {
            Err(error) => callback.complete(Err(error)),
            Ok(stream) => {
                if let Err(error) = catch(OP, || stream.author()?.host_callback(callback)) {
                    stream.health().note(OP, &error);
                }
            }
        }
        Ok(1)
    };
    guard_quiet(OP, || 1, body)
}

// Description.

pub(super) unsafe extern "C" fn get_numa_node<D: Device>(device: *const SP_Device) -> i32 {
    let body = || {
        // SAFETY: the host passes a device.
        let node = unsafe { device_of::<D>(device)? }.device.numa_node();
        Ok(node.map_or(-1, i32::from))
    };
    guard_quiet("get_numa_node", || -1, body)
}

pub(super) unsafe extern "C" fn get_memory_bandwidth<D: Device>(device: *const SP_Device) -> i64 {
    let body = || {
        // SAFETY: the host passes a device.
        let bandwidth = unsafe { device_of::<D>(device)? }.device.memory_bandwidth();
        Ok(bandwidth.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)))
    };
    guard_quiet("get_memory_bandwidth", || -1, body)
}

pub(super) unsafe extern "C" fn get_gflops<D: Device>(device: *const SP_Device) -> f64 {
    let body = || {
        // SAFETY: the host passes a device.
        let gflops = unsafe { device_of::<D>(device)? }.device.gflops();
        Ok(gflops.unwrap_or(-1.0))
    };
    guard_quiet("get_gflops", || -1.0, body)
}
