//! The tables of a device, of its graph pass and of its profiler.

use std::ffi::{c_int, c_void};

use tf_fs_sys::*;

use super::format::text;
use super::tables::tables;
use crate::call::Call;

/// Returns the size in a struct's first member; 0 for null.
///
/// # Safety
/// Null, or a struct that begins with its size.
pub(super) unsafe fn size<T>(table: *const T) -> usize {
    // SAFETY: not null, so a struct whose first member is its size.
    if table.is_null() { 0 } else { unsafe { table.cast::<usize>().read() } }
}

/// Adds the number of bytes that a copy has moved.
fn moved(call: &mut Call, size: u64) {
    call.argument(format_args!("{size} bytes"));
    if call.is_ok() {
        call.bytes += size;
    }
}

/// Returns the owner of the tables that a platform's functions fill: the device's type.
unsafe fn subject(platform: *const SP_Platform) -> String {
    // SAFETY: a platform of the host's, with the plugin's strings.
    unsafe { platform.as_ref().map(|platform| text(platform.r#type)).unwrap_or_default() }
}

type Platform = *const SP_Platform;
type Device = *const SP_Device;
type Status = *mut TF_Status;
type Memory = *mut SP_DeviceMemoryBase;
type Source = *const SP_DeviceMemoryBase;

tables! {
    /// `SE_PlatformRegistrationParams`.
    registration: SE_PlatformRegistrationParams, 4 {
        fn destroy_platform(platform: *mut SP_Platform);
        fn destroy_platform_fns(platform_fns: *mut SP_PlatformFns);
    }

    /// `SP_PlatformFns`.
    platform: SP_PlatformFns, 4 {
        fn get_device_count(platform: Platform, device_count: *mut c_int, status: Status) => |call| {
            if let Some(count) = device_count.as_ref() {
                call.value(format_args!("{count}"));
            }
        };
        fn create_device(platform: Platform, params: *mut SE_CreateDeviceParams, status: Status) => |call| {
            if let Some(params) = params.as_ref() {
                call.argument(format_args!(":{}", params.ordinal));
            }
        };
        fn destroy_device(platform: Platform, device: *mut SP_Device),
            before ordinal = device.as_ref().map(|device| device.ordinal)
            => |call| {
                if let Some(ordinal) = ordinal {
                    call.argument(format_args!(":{ordinal}"));
                }
            };
        fn create_device_fns(
            platform: Platform, params: *mut SE_CreateDeviceFnsParams, status: Status
        ), before had = params.as_ref().map_or(0, |params| size(params.device_fns)) => |call| {
            if let Some(params) = params.as_ref() {
                let table = params.device_fns;
                device::wrap(table, had.min(size(table)), &subject(platform));
            }
        };
        fn destroy_device_fns(platform: Platform, device_fns: *mut SP_DeviceFns);
        fn create_stream_executor(
            platform: Platform, params: *mut SE_CreateStreamExecutorParams, status: Status
        ), before had = params.as_ref().map_or(0, |params| size(params.stream_executor)) => |call| {
            if let Some(params) = params.as_ref() {
                let table = params.stream_executor;
                let (size, subject) = (had.min(size(table)), subject(platform));
                executor::wrap(table, size, &subject);
                stream_options::wrap(table.cast(), size, &subject);
            }
        };
        fn destroy_stream_executor(platform: Platform, stream_executor: *mut SP_StreamExecutor);
        fn create_timer_fns(platform: Platform, timer: *mut SP_TimerFns, status: Status), before had = size(timer)
            => |call| super::timer::wrap(timer, had.min(size(timer)), &subject(platform));
        fn destroy_timer_fns(platform: Platform, timer_fns: *mut SP_TimerFns);
    }

    /// `SP_DeviceFns`.
    device: SP_DeviceFns, 4 {
        fn get_numa_node(device: Device) -> i32;
        fn get_memory_bandwidth(device: Device) -> i64;
        fn get_gflops(device: Device) -> f64;
    }

    /// `SP_StreamExecutor`.
    executor: SP_StreamExecutor, 4 {
        fn allocate(device: Device, size: u64, memory_space: i64, mem: Memory) => |call| {
            call.argument(format_args!("{size} bytes"));
            if let Some(memory) = mem.as_ref() {
                call.memory_of(memory.opaque, size);
            }
        };
        fn deallocate(device: Device, memory: Memory), before had = memory.as_ref().copied().unwrap_or_default()
            => |call| call.argument(format_args!("{:p}", had.opaque));
        fn host_memory_allocate(device: Device, size: u64) -> *mut c_void => |call, memory| {
            call.argument(format_args!("{size} bytes"));
            call.memory_of(memory, size);
        };
        fn host_memory_deallocate(device: Device, mem: *mut c_void) => |call| call.argument(format_args!("{mem:p}"));
        fn unified_memory_allocate(device: Device, bytes: u64) -> *mut c_void => |call, memory| {
            call.argument(format_args!("{bytes} bytes"));
            call.memory_of(memory, bytes);
        };
        fn unified_memory_deallocate(device: Device, location: *mut c_void) => |call| call.argument(format_args!("{location:p}"));
        fn get_allocator_stats(device: Device, stats: *mut SP_AllocatorStats) -> TF_Bool => |call, there| {
            call.truth(there != 0);
            if let Some(stats) = stats.as_ref().filter(|_| there != 0) {
                call.value(format_args!("{} in use", stats.bytes_in_use));
            }
        };
        fn device_memory_usage(device: Device, free: *mut i64, total: *mut i64) -> TF_Bool => |call, known| {
            call.truth(known != 0);
            if let (Some(free), Some(total), true) = (free.as_ref(), total.as_ref(), known != 0) {
                call.value(format_args!("{free} of {total} free"));
            }
        };
        fn create_stream(device: Device, stream: *mut SP_Stream, status: Status);
        fn destroy_stream(device: Device, stream: SP_Stream);
        fn create_stream_dependency(
            device: Device, dependent: SP_Stream, other: SP_Stream, status: Status
        ) => only |call, ()| {
            call.device(device.as_ref());
            call.handle("stream", dependent);
            call.argument(format_args!("waits for {other:p}"));
        };
        fn get_stream_status(device: Device, stream: SP_Stream, status: Status);
        fn create_event(device: Device, event: *mut SP_Event, status: Status);
        fn destroy_event(device: Device, event: SP_Event);
        fn get_event_status(device: Device, event: SP_Event) -> SE_EventStatus => |call, status| {
            match status {
                SE_EVENT_UNKNOWN => call.value(format_args!("unknown")),
                SE_EVENT_ERROR => call.failed("ERROR".to_owned()),
                SE_EVENT_PENDING => call.value(format_args!("pending")),
                SE_EVENT_COMPLETE => call.value(format_args!("complete")),
                other => call.value(format_args!("{other}")),
            }
        };
        fn record_event(device: Device, stream: SP_Stream, event: SP_Event, status: Status);
        fn wait_for_event(device: Device, stream: SP_Stream, event: SP_Event, status: Status);
        fn create_timer(device: Device, timer: *mut SP_Timer, status: Status);
        fn destroy_timer(device: Device, timer: SP_Timer);
        fn start_timer(device: Device, stream: SP_Stream, timer: SP_Timer, status: Status);
        fn stop_timer(device: Device, stream: SP_Stream, timer: SP_Timer, status: Status);
        fn memcpy_dtoh(
            device: Device, stream: SP_Stream, host_dst: *mut c_void, device_src: Source, size: u64, status: Status
        ) => |call| moved(call, size);
        fn memcpy_htod(
            device: Device, stream: SP_Stream, device_dst: Memory, host_src: *const c_void, size: u64, status: Status
        ) => |call| moved(call, size);
        fn memcpy_dtod(device: Device, stream: SP_Stream, device_dst: Memory, device_src: Source, size: u64, status: Status)
            => |call| moved(call, size);
        fn sync_memcpy_dtoh(device: Device, host_dst: *mut c_void, device_src: Source, size: u64, status: Status)
            => |call| moved(call, size);
        fn sync_memcpy_htod(device: Device, device_dst: Memory, host_src: *const c_void, size: u64, status: Status)
            => |call| moved(call, size);
        fn sync_memcpy_dtod(device: Device, device_dst: Memory, device_src: Source, size: u64, status: Status)
            => |call| moved(call, size);
        fn block_host_for_event(device: Device, event: SP_Event, status: Status);
        fn block_host_until_done(device: Device, stream: SP_Stream, status: Status);
        fn synchronize_all_activity(device: Device, status: Status);
        fn mem_zero(device: Device, stream: SP_Stream, location: Memory, size: u64, status: Status)
            => |call| moved(call, size);
        fn memset(
            device: Device, stream: SP_Stream, location: Memory, pattern: u8, size: u64, status: Status
        ) => |call| {
            moved(call, size);
            call.argument(format_args!("of {pattern:#04x}"));
        };
        fn memset32(
            device: Device, stream: SP_Stream, location: Memory, pattern: u32, size: u64, status: Status
        ) => |call| {
            moved(call, size);
            call.argument(format_args!("of {pattern:#010x}"));
        };
        fn host_callback(
            device: Device, stream: SP_Stream, callback_fn: SE_StatusCallbackFn, callback_arg: *mut c_void
        ) -> TF_Bool;
    }

    /// The function that TensorFlow 2.22 has added to `SP_StreamExecutor`.
    stream_options: SP_StreamExecutorWithStreamOptions, 4 {
        fn create_stream_with_options(
            device: Device, options: *const SP_StreamOptions, stream: *mut SP_Stream, status: Status
        ) => |call| {
            if let Some(options) = options.as_ref().filter(|options| options.has_priority != 0) {
                call.argument(format_args!("priority {}", options.priority));
            }
        };
    }

    /// `SP_TimerFns`.
    timer: SP_TimerFns, 4 {
        fn nanoseconds(timer: SP_Timer) -> u64;
    }

    /// `TP_Optimizer`.
    optimizer: TP_Optimizer, 4 {
        fn create_func() -> *mut c_void;
        fn optimize_func(
            optimizer: *mut c_void, input_graph: *const TF_Buffer, item: *const TF_GrapplerItem,
            output_graph: *mut TF_Buffer, status: Status
        ) => |call| {
            if let Some(graph) = input_graph.as_ref() {
                call.argument(format_args!("graph of {} bytes", graph.length));
            }
            if let Some(graph) = output_graph.as_ref().filter(|_| call.is_ok()) {
                call.value(format_args!("graph of {} bytes", graph.length));
            }
        };
        fn destroy_func(optimizer: *mut c_void);
    }

    /// `TF_ProfilerRegistrationParams`.
    profiling: TF_ProfilerRegistrationParams, 4 {
        fn destroy_profiler(profiler: *mut TP_Profiler);
        fn destroy_profiler_fns(profiler_fns: *mut TP_ProfilerFns);
    }

    /// `TP_ProfilerFns`.
    profiler: TP_ProfilerFns, 4 {
        fn start(profiler: *const TP_Profiler, status: Status);
        fn stop(profiler: *const TP_Profiler, status: Status);
        fn collect_data_xspace(
            profiler: *const TP_Profiler, buffer: *mut u8, size_in_bytes: *mut usize, status: Status
        ) => |call| {
            call.argument(format_args!("{}", if buffer.is_null() { "how much" } else { "all" }));
            if let Some(size) = size_in_bytes.as_ref() {
                call.value(format_args!("{size} bytes"));
            }
        };
    }
}
