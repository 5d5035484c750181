//! The callbacks of a platform's devices in `tensorflow/c/experimental/stream_executor/stream_executor.h`. The rules in
//! [`stream_executor`](crate::stream_executor) hold here too.

use crate::c_api_macros::TF_Bool;
use crate::layout::Status;
use crate::stream_executor::{
    SE_EventStatus, SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Event, SP_Stream,
    SP_Timer,
};
use core::ffi::c_void;

/// A function of the host for `host_callback`: takes the `callback_arg` and a non-null status of
/// the plugin, `TF_OK`, into which it writes its own result. It frees what the argument points to,
/// so it is called exactly once.
pub type SE_StatusCallbackFn =
    Option<unsafe extern "C" fn(callback_arg: *mut c_void, status: Status)>;

type Device = *const SP_Device;
type Memory = *mut SP_DeviceMemoryBase;
type Source = *const SP_DeviceMemoryBase;

crate::layout::records! {
    /// The callbacks of a platform's devices.
    ///
    /// "Enqueued" work is done in the stream's order, after the call has returned or before; memory
    /// that it reads or writes stays valid until an event recorded behind it is complete (host
    /// memory always; device memory while the host allocates by its own strategy, see
    /// [`SP_Platform::use_bfc_allocator`](crate::SP_Platform::use_bfc_allocator)). Handles of
    /// streams and events can be null, where an earlier `create_*` failed.
    ///
    /// `struct_size` is smaller in a host before TensorFlow 2.8, which lacks `mem_zero`, `memset` and `memset32` and has
    /// `host_callback` in the place of the first.
    pub struct SP_StreamExecutor, SP_STREAMEXECUTOR_STRUCT_SIZE, ext {
        // Memory.
        /// Allocates `size` bytes, never 0, of device memory and fills `mem`; `opaque` is null if there are
        /// none left. `memory_space` is 0. After null the host requests less; for at most 2,304
        /// bytes it requests the same again, forever.
        fn allocate(device: Device, size: u64, memory_space: i64, mem: Memory);
        /// Frees memory of `allocate`. Only the address in `memory` is valid; null is allowed.
        fn deallocate(device: Device, memory: Memory);
        /// Allocates `size` bytes of host memory that the device can copy from and to fast, aligned to at
        /// least 64; null if no memory is left.
        fn host_memory_allocate(device: Device, size: u64) -> *mut c_void;
        /// Frees memory of `host_memory_allocate`.
        fn host_memory_deallocate(device: Device, mem: *mut c_void);
        /// Allocates memory that host and devices share. Required only with
        /// [`SP_Platform::supports_unified_memory`](crate::SP_Platform::supports_unified_memory), and not used.
        fn unified_memory_allocate(device: Device, bytes: u64) -> *mut c_void;
        /// Frees memory of `unified_memory_allocate`.
        fn unified_memory_deallocate(device: Device, location: *mut c_void);
        /// Fills `stats` and returns true, or false if there are no statistics.
        fn get_allocator_stats(device: Device, stats: *mut SP_AllocatorStats) -> TF_Bool;
        /// Fills in the device's free and total memory in bytes and returns true. False makes the device
        /// fail. What is free here decides how much the host allocates.
        fn device_memory_usage(device: Device, free: *mut i64, total: *mut i64) -> TF_Bool;

        // Streams.
        /// Creates a stream. An error leaves the device without streams, and TensorFlow up to 2.16 continues
        /// with a null one.
        fn create_stream(device: Device, stream: *mut SP_Stream, status: Status);
        /// Waits for a stream's work and frees the stream.
        fn destroy_stream(device: Device, stream: SP_Stream);
        /// Makes all later work of `dependent` wait for what is in `other` now. TensorFlow up to 2.16
        /// aborts on an error.
        fn create_stream_dependency(device: Device, dependent: SP_Stream, other: SP_Stream, status: Status);
        /// Reports whether the stream works, without waiting for it.
        fn get_stream_status(device: Device, stream: SP_Stream, status: Status);

        // Events.
        /// Creates an event. TensorFlow 2.17 and later abort on an error; earlier ones continue with a null event.
        fn create_event(device: Device, event: *mut SP_Event, status: Status);
        /// Frees an event.
        fn destroy_event(device: Device, event: SP_Event);
        /// Returns how far the latest record of an event is. The host polls it, about every 10 µs,
        /// and stops at the first of a stream's events that is pending.
        fn get_event_status(device: Device, event: SP_Event) -> SE_EventStatus;
        /// Puts an event, which may have been recorded before, behind the work of a stream. **The host
        /// ignores an error** and reads too early if the event then reports that it is complete.
        fn record_event(device: Device, stream: SP_Stream, event: SP_Event, status: Status);
        /// Makes all later work of a stream wait for the latest record of an event.
        fn wait_for_event(device: Device, stream: SP_Stream, event: SP_Event, status: Status);

        // Timers.
        /// Creates a timer.
        fn create_timer(device: Device, timer: *mut SP_Timer, status: Status);
        /// Frees a timer.
        fn destroy_timer(device: Device, timer: SP_Timer);
        /// Starts a timer when the stream gets there.
        fn start_timer(device: Device, stream: SP_Stream, timer: SP_Timer, status: Status);
        /// Stops a timer when the stream gets there.
        fn stop_timer(device: Device, stream: SP_Stream, timer: SP_Timer, status: Status);

        // Copies. TensorFlow up to 2.16 aborts on an error of the first three; sizes are in bytes.
        /// Enqueues a copy from the device to the host.
        fn memcpy_dtoh(
            device: Device, stream: SP_Stream, host_dst: *mut c_void, device_src: Source, size: u64, status: Status
        );
        /// Enqueues a copy from the host to the device.
        fn memcpy_htod(
            device: Device, stream: SP_Stream, device_dst: Memory, host_src: *const c_void, size: u64, status: Status
        );
        /// Enqueues a copy within the device or between two of the platform. The host calls it
        /// without checking that it is not null.
        fn memcpy_dtod(device: Device, stream: SP_Stream, device_dst: Memory, device_src: Source, size: u64, status: Status);
        /// Copies from the device to the host before it returns.
        fn sync_memcpy_dtoh(device: Device, host_dst: *mut c_void, device_src: Source, size: u64, status: Status);
        /// Copies from the host to the device before it returns.
        fn sync_memcpy_htod(device: Device, device_dst: Memory, host_src: *const c_void, size: u64, status: Status);
        /// Copies within the device before it returns.
        fn sync_memcpy_dtod(device: Device, device_dst: Memory, device_src: Source, size: u64, status: Status);

        // Waiting.
        /// Returns once the latest record of an event is complete.
        fn block_host_for_event(device: Device, event: SP_Event, status: Status);
        /// Returns once the present work of a stream is done; the stream can be null. If this is null the
        /// host records an event and waits for that.
        fn block_host_until_done(device: Device, stream: SP_Stream, status: Status);
        /// Returns once the present work of all streams is done; runs before a value gets to Python. The one
        /// place where an error of asynchronous work becomes an ordinary error in every release.
        fn synchronize_all_activity(device: Device, status: Status);

        // Fills; sizes are in bytes.
        /// Enqueues a fill with zeros.
        fn mem_zero(device: Device, stream: SP_Stream, location: Memory, size: u64, status: Status);
        /// Enqueues a fill with a byte.
        fn memset(device: Device, stream: SP_Stream, location: Memory, pattern: u8, size: u64, status: Status);
        /// Enqueues a fill with a pattern of four bytes.
        fn memset32(device: Device, stream: SP_Stream, location: Memory, pattern: u32, size: u64, status: Status);

        /// Enqueues a call of `callback_fn` with `callback_arg`, on another thread than the caller's, and returns true.
        /// False means that it will never be called; then everything that it would have freed is lost.
        fn host_callback(
            device: Device, stream: SP_Stream, callback_fn: SE_StatusCallbackFn, callback_arg: *mut c_void
        ) -> TF_Bool;
    }

    /// Parameters of `create_stream_executor`.
    pub struct SE_CreateStreamExecutorParams, SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE, ext {
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub stream_executor: *mut SP_StreamExecutor,
    }
}
