//! The callbacks of a platform's devices in `tensorflow/c/experimental/stream_executor/stream_executor.h`. The rules in
//! [`stream_executor`](crate::stream_executor) hold here too.

use crate::c_api_macros::TF_Bool;
use crate::layout::offset_of_end;
use crate::status::TF_Status;
use crate::stream_executor::{
    SE_EventStatus, SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Event, SP_Stream,
    SP_Timer,
};
use core::ffi::c_void;

/// A function of the host for `host_callback`: takes the `callback_arg` and a non-null status of the
/// plugin's, `TF_OK`, into which it writes its own result. It frees what the argument points to, so it
/// is called exactly once.
pub type SE_StatusCallbackFn =
    Option<unsafe extern "C" fn(callback_arg: *mut c_void, status: *mut TF_Status)>;

/// A callback with a stream and a status.
pub type SP_StreamOp =
    unsafe extern "C" fn(device: *const SP_Device, stream: SP_Stream, status: *mut TF_Status);

/// A callback with a stream, an event and a status.
pub type SP_StreamEventOp = unsafe extern "C" fn(
    device: *const SP_Device,
    stream: SP_Stream,
    event: SP_Event,
    status: *mut TF_Status,
);

/// A callback with a stream, a timer and a status.
pub type SP_StreamTimerOp = unsafe extern "C" fn(
    device: *const SP_Device,
    stream: SP_Stream,
    timer: SP_Timer,
    status: *mut TF_Status,
);

/// The callbacks of a platform's devices.
///
/// "Enqueued" work is done in the stream's order, after the call has returned or before; memory that
/// it reads or writes stays valid until an event recorded behind it is complete (the host's memory
/// for certain; device memory as long as the host allocates by its own strategy, see
/// [`SP_Platform::use_bfc_allocator`](crate::SP_Platform::use_bfc_allocator)). Handles of streams and events can be null, where an earlier
/// `create_*` failed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_StreamExecutor {
    /// [`SP_STREAMEXECUTOR_STRUCT_SIZE`]. Smaller in a host before TensorFlow 2.8, which lacks
    /// `mem_zero`, `memset` and `memset32` and has `host_callback` in the place of the first.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,

    // Memory.
    /// Allocates `size` bytes, never 0, of device memory and fills `mem`; `opaque` is null if there are
    /// none left. `memory_space` is 0. After null the host requests less; for at most 2,304
    /// bytes it requests the same again, forever.
    pub allocate: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            size: u64,
            memory_space: i64,
            mem: *mut SP_DeviceMemoryBase,
        ),
    >,
    /// Frees memory of `allocate`. Only the address in `memory` is valid; null is allowed.
    pub deallocate:
        Option<unsafe extern "C" fn(device: *const SP_Device, memory: *mut SP_DeviceMemoryBase)>,
    /// Allocates `size` bytes of host memory that the device can copy from and to fast, aligned to at
    /// least 64; null if no memory is left.
    pub host_memory_allocate:
        Option<unsafe extern "C" fn(device: *const SP_Device, size: u64) -> *mut c_void>,
    /// Frees memory of `host_memory_allocate`.
    pub host_memory_deallocate:
        Option<unsafe extern "C" fn(device: *const SP_Device, mem: *mut c_void)>,
    /// Allocates memory that host and devices share. Demanded only with
    /// [`SP_Platform::supports_unified_memory`](crate::SP_Platform::supports_unified_memory), and not used.
    pub unified_memory_allocate:
        Option<unsafe extern "C" fn(device: *const SP_Device, bytes: u64) -> *mut c_void>,
    /// Frees memory of `unified_memory_allocate`.
    pub unified_memory_deallocate:
        Option<unsafe extern "C" fn(device: *const SP_Device, location: *mut c_void)>,
    /// Fills `stats` and returns true, or false if there are no statistics.
    pub get_allocator_stats: Option<
        unsafe extern "C" fn(device: *const SP_Device, stats: *mut SP_AllocatorStats) -> TF_Bool,
    >,
    /// Fills in the device's free and total memory in bytes and returns true. False makes the device
    /// fail. What is free here decides how much the host allocates.
    pub device_memory_usage: Option<
        unsafe extern "C" fn(device: *const SP_Device, free: *mut i64, total: *mut i64) -> TF_Bool,
    >,

    // Streams.
    /// Creates a stream. An error leaves the device without streams, and TensorFlow up to 2.16 continues
    /// with a null one.
    pub create_stream: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: *mut SP_Stream,
            status: *mut TF_Status,
        ),
    >,
    /// Waits for a stream's work and frees the stream.
    pub destroy_stream: Option<unsafe extern "C" fn(device: *const SP_Device, stream: SP_Stream)>,
    /// Makes all later work of `dependent` wait for what is in `other` now. TensorFlow up to 2.16
    /// aborts on an error.
    pub create_stream_dependency: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            dependent: SP_Stream,
            other: SP_Stream,
            status: *mut TF_Status,
        ),
    >,
    /// Whether the stream works, without waiting for it.
    pub get_stream_status: Option<SP_StreamOp>,

    // Events.
    /// Creates an event. TensorFlow 2.17 and later abort on an error; earlier ones continue with a null event.
    pub create_event: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            event: *mut SP_Event,
            status: *mut TF_Status,
        ),
    >,
    /// Frees an event.
    pub destroy_event: Option<unsafe extern "C" fn(device: *const SP_Device, event: SP_Event)>,
    /// How far the latest record of an event is. The host polls it, about every 10 µs, and stops at the
    /// first of a stream's events that is pending.
    pub get_event_status:
        Option<unsafe extern "C" fn(device: *const SP_Device, event: SP_Event) -> SE_EventStatus>,
    /// Puts an event, which may have been recorded before, behind the work of a stream. **The host
    /// ignores an error** and reads too early if the event then reports that it is complete.
    pub record_event: Option<SP_StreamEventOp>,
    /// Makes all later work of a stream wait for the latest record of an event.
    pub wait_for_event: Option<SP_StreamEventOp>,

    // Timers.
    /// Makes a timer.
    pub create_timer: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            timer: *mut SP_Timer,
            status: *mut TF_Status,
        ),
    >,
    /// Frees a timer.
    pub destroy_timer: Option<unsafe extern "C" fn(device: *const SP_Device, timer: SP_Timer)>,
    /// Starts a timer when the stream gets there.
    pub start_timer: Option<SP_StreamTimerOp>,
    /// Stops a timer when the stream gets there.
    pub stop_timer: Option<SP_StreamTimerOp>,

    // Copies. TensorFlow up to 2.16 aborts on an error of the first three; sizes are in bytes.
    /// Enqueues a copy from the device to the host.
    pub memcpy_dtoh: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            host_dst: *mut c_void,
            device_src: *const SP_DeviceMemoryBase,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Enqueues a copy from the host to the device.
    pub memcpy_htod: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            device_dst: *mut SP_DeviceMemoryBase,
            host_src: *const c_void,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Enqueues a copy within the device or between two of the platform. The host calls it without
    /// having checked that it is there.
    pub memcpy_dtod: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            device_dst: *mut SP_DeviceMemoryBase,
            device_src: *const SP_DeviceMemoryBase,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Copies from the device to the host before it returns.
    pub sync_memcpy_dtoh: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            host_dst: *mut c_void,
            device_src: *const SP_DeviceMemoryBase,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Copies from the host to the device before it returns.
    pub sync_memcpy_htod: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            device_dst: *mut SP_DeviceMemoryBase,
            host_src: *const c_void,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Copies within the device before it returns.
    pub sync_memcpy_dtod: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            device_dst: *mut SP_DeviceMemoryBase,
            device_src: *const SP_DeviceMemoryBase,
            size: u64,
            status: *mut TF_Status,
        ),
    >,

    // Waiting.
    /// Returns once the latest record of an event is complete.
    pub block_host_for_event: Option<
        unsafe extern "C" fn(device: *const SP_Device, event: SP_Event, status: *mut TF_Status),
    >,
    /// Returns once the present work of a stream is done; the stream can be null. If this is null the
    /// host records an event and waits for that.
    pub block_host_until_done: Option<SP_StreamOp>,
    /// Returns once the present work of all streams is done; runs before a value gets to Python. The one
    /// place where an error of asynchronous work becomes an ordinary error in every release.
    pub synchronize_all_activity:
        Option<unsafe extern "C" fn(device: *const SP_Device, status: *mut TF_Status)>,

    // Fills; sizes are in bytes.
    /// Enqueues filling with zeros.
    pub mem_zero: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            location: *mut SP_DeviceMemoryBase,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Enqueues filling with a byte.
    pub memset: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            location: *mut SP_DeviceMemoryBase,
            pattern: u8,
            size: u64,
            status: *mut TF_Status,
        ),
    >,
    /// Enqueues filling with a pattern of four bytes.
    pub memset32: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            location: *mut SP_DeviceMemoryBase,
            pattern: u32,
            size: u64,
            status: *mut TF_Status,
        ),
    >,

    /// Enqueues a call of `callback_fn` with `callback_arg`, on another thread than the caller's, and
    /// returns true. False means that it will never be called; what it would have freed is lost then.
    pub host_callback: Option<
        unsafe extern "C" fn(
            device: *const SP_Device,
            stream: SP_Stream,
            callback_fn: SE_StatusCallbackFn,
            callback_arg: *mut c_void,
        ) -> TF_Bool,
    >,
}

/// Size in bytes of [`SP_StreamExecutor`] up to the end of its last field.
pub const SP_STREAMEXECUTOR_STRUCT_SIZE: usize = offset_of_end!(SP_StreamExecutor, host_callback);

/// Parameters of `create_stream_executor`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SE_CreateStreamExecutorParams {
    /// [`SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE`], from the host.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// To be filled by the plugin, within the `struct_size` found in it.
    pub stream_executor: *mut SP_StreamExecutor,
}

/// Size in bytes of [`SE_CreateStreamExecutorParams`] up to the end of its last field.
pub const SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE: usize =
    offset_of_end!(SE_CreateStreamExecutorParams, stream_executor);
