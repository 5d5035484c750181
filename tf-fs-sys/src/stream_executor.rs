//! `tensorflow/c/experimental/stream_executor/stream_executor.h`: pluggable devices.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does, which is not always what the
//! header promises. In all these releases the header is the same.
//!
//! # Sizes
//!
//! Each struct begins with `struct_size`, the offset of the end of the last field that the side that
//! made the struct knows. The host makes every struct that a plugin fills at load, zeroed, on its stack
//! and with the host's size in `struct_size`. So a plugin
//! - reads a field only if `struct_size` covers it,
//! - writes a field only if `struct_size` covers it, for beyond is the host's stack,
//! - sets `struct_size` to what it has filled: never 0, which the host refuses.
//!
//! The host compares neither sizes nor versions; the plugin compares [`SE_MAJOR`].
//!
//! # Rules for every callback
//!
//! - Null and 0 mean "not provided". The host calls some null callbacks all the same: fill every field.
//! - Callbacks are called from many threads, also at once on one stream or event.
//! - The `TF_Status` handed in is `TF_OK`; leaving it alone reports success. What an error leads to
//!   depends on the callback; **at load any error aborts the process**.
//! - No pointer to a struct stays valid beyond the call: the host copies structs by value.
//! - Nothing may unwind into the host.
//! - At process exit the host destroys nothing.

use crate::c_api_macros::TF_Bool;
use crate::layout::offset_of_end;
use crate::status::TF_Status;
use core::ffi::{c_char, c_int, c_uint, c_void};

/// Major version of this API: differs if the two sides cannot work together.
pub const SE_MAJOR: i32 = 0;
/// Minor version of this API. Releases added fields without raising it: go by `struct_size`.
pub const SE_MINOR: i32 = 0;
/// Patch version of this API.
pub const SE_PATCH: i32 = 1;

crate::layout::opaque! {
    /// What a stream handle points to: the plugin defines it, the host never looks at it.
    pub struct SP_Stream_st;

    /// What an event handle points to: the plugin defines it, the host never looks at it.
    pub struct SP_Event_st;

    /// What a timer handle points to: the plugin defines it, the host never looks at it.
    pub struct SP_Timer_st;
}

/// A queue of work for a device, done in order.
pub type SP_Stream = *mut SP_Stream_st;
/// A point in a stream that can be waited for.
pub type SP_Event = *mut SP_Event_st;
/// A stopwatch between two points in a stream.
pub type SP_Timer = *mut SP_Timer_st;

/// A function of the host for `host_callback`: takes the `callback_arg` and a non-null status of the
/// plugin's, `TF_OK`, into which it writes its own result. It frees what the argument points to, so it
/// is called exactly once.
pub type SE_StatusCallbackFn =
    Option<unsafe extern "C" fn(callback_arg: *mut c_void, status: *mut TF_Status)>;

/// Functions of timers. TensorFlow 2.12 and 2.13 demand and use timers, 2.14 to 2.21 neither.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_TimerFns {
    /// [`SP_TIMER_FNS_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The nanoseconds between `start_timer` and `stop_timer`.
    pub nanoseconds: Option<unsafe extern "C" fn(timer: SP_Timer) -> u64>,
}

/// Size in bytes of [`SP_TimerFns`] up to the end of its last field.
pub const SP_TIMER_FNS_STRUCT_SIZE: usize = offset_of_end!(SP_TimerFns, nanoseconds);

/// What an allocator has done so far; sizes are in bytes. It has no `ext`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SP_AllocatorStats {
    /// [`SP_ALLOCATORSTATS_STRUCT_SIZE`]; with 0 the host logs an error and has no statistics.
    pub struct_size: usize,
    /// Number of allocations so far.
    pub num_allocs: i64,
    /// Allocated now.
    pub bytes_in_use: i64,
    /// The most that was allocated at any time.
    pub peak_bytes_in_use: i64,
    /// The largest single allocation.
    pub largest_alloc_size: i64,
    /// Whether `bytes_limit` holds; 0 or 1.
    pub has_bytes_limit: i8,
    /// The most that can be allocated.
    pub bytes_limit: i64,
    /// Reserved, whether allocated or not.
    pub bytes_reserved: i64,
    /// The most that was reserved at any time.
    pub peak_bytes_reserved: i64,
    /// Whether `bytes_reservable_limit` holds; 0 or 1.
    pub has_bytes_reservable_limit: i8,
    /// The most that can be reserved.
    pub bytes_reservable_limit: i64,
    /// The largest free block.
    pub largest_free_block_bytes: i64,
}

/// Size in bytes of [`SP_AllocatorStats`] up to the end of its last field.
pub const SP_ALLOCATORSTATS_STRUCT_SIZE: usize =
    offset_of_end!(SP_AllocatorStats, largest_free_block_bytes);

/// The status of an event: one of the four constants below.
pub type SE_EventStatus = c_uint;
/// Nobody knows. **Aborts the process**.
pub const SE_EVENT_UNKNOWN: SE_EventStatus = 0;
/// The work before the event failed. **Aborts the process**: report failures in another way.
pub const SE_EVENT_ERROR: SE_EventStatus = 1;
/// The work before the event is not done.
pub const SE_EVENT_PENDING: SE_EventStatus = 2;
/// The work before the event is done, or the event was never recorded.
pub const SE_EVENT_COMPLETE: SE_EventStatus = 3;

/// A range of device memory.
///
/// The host takes `opaque` for an address: it slices allocations by adding to it. For all calls but
/// `allocate` it makes the struct again from the address, so `payload` is lost.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_DeviceMemoryBase {
    /// [`SP_DEVICE_MEMORY_BASE_STRUCT_SIZE`]; the host logs an error if `allocate` leaves 0.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The address; null for none.
    pub opaque: *mut c_void,
    /// The size in bytes. Of the copy in a copy; 0 in `deallocate`.
    pub size: u64,
    /// Free for the plugin in the header; 0 in every call of the host's.
    pub payload: u64,
}

/// Size in bytes of [`SP_DeviceMemoryBase`] up to the end of its last field.
pub const SP_DEVICE_MEMORY_BASE_STRUCT_SIZE: usize = offset_of_end!(SP_DeviceMemoryBase, payload);

/// One device. The host copies it after `create_device`, so only its content has an identity. The
/// strings outlive the device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_Device {
    /// [`SP_DEVICE_STRUCT_SIZE`]; 0 makes the device fail (and TensorFlow 2.12 and 2.13 abort).
    pub struct_size: usize,
    /// Free for the plugin.
    pub ext: *mut c_void,
    /// Index of the device, from 0.
    pub ordinal: i32,
    /// The plugin's state for the device; the host never looks at it.
    pub device_handle: *mut c_void,
    /// Name of the hardware, NUL-terminated, or null. Shown nowhere.
    pub hardware_name: *const c_char,
    /// Name of the vendor, NUL-terminated, or null. Shown nowhere.
    pub device_vendor: *const c_char,
    /// PCI address as in `0000:00:02.1`, NUL-terminated, or null. Shown nowhere.
    pub pci_bus_id: *const c_char,
}

/// Size in bytes of [`SP_Device`] up to the end of its last field.
pub const SP_DEVICE_STRUCT_SIZE: usize = offset_of_end!(SP_Device, pci_bus_id);

/// Parameters of `create_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SE_CreateDeviceParams {
    /// [`SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE`], from the host.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// Index of the device to create, from 0.
    pub ordinal: i32,
    /// To be filled by the plugin, within the `struct_size` found in it.
    pub device: *mut SP_Device,
}

/// Size in bytes of [`SE_CreateDeviceParams`] up to the end of its last field.
pub const SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE: usize =
    offset_of_end!(SE_CreateDeviceParams, device);

/// Functions that describe a device. Each may be null; a negative result means "unknown".
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_DeviceFns {
    /// [`SP_DEVICE_FNS_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The NUMA node that the device is attached to.
    pub get_numa_node: Option<unsafe extern "C" fn(device: *const SP_Device) -> i32>,
    /// Bandwidth of the device's own memory in bytes a second.
    pub get_memory_bandwidth: Option<unsafe extern "C" fn(device: *const SP_Device) -> i64>,
    /// Estimated floating-point operations a nanosecond. Never requested.
    pub get_gflops: Option<unsafe extern "C" fn(device: *const SP_Device) -> f64>,
}

/// Size in bytes of [`SP_DeviceFns`] up to the end of its last field.
pub const SP_DEVICE_FNS_STRUCT_SIZE: usize = offset_of_end!(SP_DeviceFns, get_gflops);

/// Parameters of `create_device_fns`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SE_CreateDeviceFnsParams {
    /// [`SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE`], from the host.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// To be filled by the plugin, within the `struct_size` found in it.
    pub device_fns: *mut SP_DeviceFns,
}

/// Size in bytes of [`SE_CreateDeviceFnsParams`] up to the end of its last field.
pub const SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE: usize =
    offset_of_end!(SE_CreateDeviceFnsParams, device_fns);

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
/// [`SP_Platform::use_bfc_allocator`]). Handles of streams and events can be null, where an earlier
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
    /// [`SP_Platform::supports_unified_memory`], and not used.
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

/// What a plugin offers: a kind of device. The host aborts unless name and type are each
/// `[A-Z][A-Z_]*`, the name is new (compared without case) and so is the type.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_Platform {
    /// [`SP_PLATFORM_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Free for the plugin.
    pub ext: *mut c_void,
    /// Name of the platform, NUL-terminated; lives as long as the process.
    pub name: *const c_char,
    /// Type of its devices, as in `/device:TYPE:0`, NUL-terminated; lives as long as the process.
    pub r#type: *const c_char,
    /// Whether there is unified memory. Nothing uses it.
    pub supports_unified_memory: TF_Bool,
    /// Whether the host allocates large regions and divides them by itself ("best fit with
    /// coalescing"), in stream order. Otherwise each tensor is an allocation, and is deallocated while
    /// enqueued work still uses it.
    pub use_bfc_allocator: TF_Bool,
    /// Whether the regions grow as needed, whatever the user set; otherwise the first one takes all.
    /// Not in a host before TensorFlow 2.10.
    pub force_memory_growth: TF_Bool,
}

/// Size in bytes of [`SP_Platform`] up to the end of its last field.
pub const SP_PLATFORM_STRUCT_SIZE: usize = offset_of_end!(SP_Platform, force_memory_growth);

/// The callbacks of a platform.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SP_PlatformFns {
    /// [`SP_PLATFORM_FNS_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The number of devices, always the same: the host calls it many times. An error is logged and counts
    /// as 0. The host calls it without having checked that it is there.
    pub get_device_count: Option<
        unsafe extern "C" fn(
            platform: *const SP_Platform,
            device_count: *mut c_int,
            status: *mut TF_Status,
        ),
    >,
    /// Makes a device. TensorFlow 2.12 and 2.13 abort on an error, later ones raise it in Python.
    pub create_device: Option<
        unsafe extern "C" fn(
            platform: *const SP_Platform,
            params: *mut SE_CreateDeviceParams,
            status: *mut TF_Status,
        ),
    >,
    /// Frees what `create_device` put into the fields; not the struct.
    pub destroy_device:
        Option<unsafe extern "C" fn(platform: *const SP_Platform, device: *mut SP_Device)>,
    /// Fills in the functions that describe devices; runs at load.
    pub create_device_fns: Option<
        unsafe extern "C" fn(
            platform: *const SP_Platform,
            params: *mut SE_CreateDeviceFnsParams,
            status: *mut TF_Status,
        ),
    >,
    /// Frees what `create_device_fns` put into the fields; not the struct.
    pub destroy_device_fns:
        Option<unsafe extern "C" fn(platform: *const SP_Platform, device_fns: *mut SP_DeviceFns)>,
    /// Fills in the callbacks of devices; runs once, at load.
    pub create_stream_executor: Option<
        unsafe extern "C" fn(
            platform: *const SP_Platform,
            params: *mut SE_CreateStreamExecutorParams,
            status: *mut TF_Status,
        ),
    >,
    /// Frees what `create_stream_executor` put into the fields; not the struct.
    pub destroy_stream_executor: Option<
        unsafe extern "C" fn(platform: *const SP_Platform, stream_executor: *mut SP_StreamExecutor),
    >,
    /// Fills in the functions of timers; runs at load, in TensorFlow 2.12 and 2.13 only.
    pub create_timer_fns: Option<
        unsafe extern "C" fn(
            platform: *const SP_Platform,
            timer: *mut SP_TimerFns,
            status: *mut TF_Status,
        ),
    >,
    /// Frees what `create_timer_fns` put into the fields; not the struct.
    pub destroy_timer_fns:
        Option<unsafe extern "C" fn(platform: *const SP_Platform, timer_fns: *mut SP_TimerFns)>,
}

/// Size in bytes of [`SP_PlatformFns`] up to the end of its last field.
pub const SP_PLATFORM_FNS_STRUCT_SIZE: usize = offset_of_end!(SP_PlatformFns, destroy_timer_fns);

/// Filled by `SE_InitPlugin`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SE_PlatformRegistrationParams {
    /// [`SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE`], from the host.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The host's [`SE_MAJOR`].
    pub major_version: i32,
    /// The host's [`SE_MINOR`].
    pub minor_version: i32,
    /// The host's [`SE_PATCH`].
    pub patch_version: i32,
    /// To be filled by the plugin, within the `struct_size` found in it.
    pub platform: *mut SP_Platform,
    /// To be filled by the plugin, within the `struct_size` found in it.
    pub platform_fns: *mut SP_PlatformFns,
    /// To be set by the plugin: frees what it put into the fields of `platform`; not the struct.
    pub destroy_platform: Option<unsafe extern "C" fn(platform: *mut SP_Platform)>,
    /// To be set by the plugin: frees what it put into the fields of `platform_fns`; not the struct.
    pub destroy_platform_fns: Option<unsafe extern "C" fn(platform_fns: *mut SP_PlatformFns)>,
}

/// Size in bytes of [`SE_PlatformRegistrationParams`] up to the end of its last field.
pub const SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE: usize =
    offset_of_end!(SE_PlatformRegistrationParams, destroy_platform_fns);

/// Type of the function `SE_InitPlugin` that a plugin exports. The host calls it for each load of the
/// shared library, and **aborts the process** on an error: a plugin that cannot work fills everything
/// in and reports 0 devices.
pub type SE_InitPluginFn =
    unsafe extern "C" fn(params: *mut SE_PlatformRegistrationParams, status: *mut TF_Status);
