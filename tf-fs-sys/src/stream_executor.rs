//! `tensorflow/c/experimental/stream_executor/stream_executor.h`: pluggable devices.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does, which is not always what the
//! header promises. In all these releases the header is the same.
//!
//! The callbacks of devices are in [`stream_executor_fns`](crate::stream_executor_fns), platforms in
//! [`stream_executor_platform`](crate::stream_executor_platform).
//!
//! # Sizes
//!
//! Each struct begins with `struct_size`, the offset of the end of the last field that the side
//! that created the struct knows. The host creates every struct that a plugin fills at load,
//! zeroed, on its stack and with the host's size in `struct_size`. So a plugin
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

use core::ffi::{c_char, c_uint, c_void};

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

type Device = *const SP_Device;

crate::layout::records! {
    /// Functions of timers. TensorFlow 2.12 and 2.13 require and use timers; 2.14 to 2.21 do neither.
    pub struct SP_TimerFns, SP_TIMER_FNS_STRUCT_SIZE, ext {
        /// Returns the nanoseconds between `start_timer` and `stop_timer`.
        fn nanoseconds(timer: SP_Timer) -> u64;
    }

    /// An allocator's statistics; sizes are in bytes. It has no `ext`. With a `struct_size` of 0 the host
    /// logs an error and has no statistics.
    #[derive(PartialEq, Eq)]
    pub struct SP_AllocatorStats, SP_ALLOCATORSTATS_STRUCT_SIZE {
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
}

/// The status of an event: one of the four constants below.
pub type SE_EventStatus = c_uint;
/// The status is unknown. **Aborts the process**.
pub const SE_EVENT_UNKNOWN: SE_EventStatus = 0;
/// The work before the event failed. **Aborts the process**: report failures in another way.
pub const SE_EVENT_ERROR: SE_EventStatus = 1;
/// The work before the event is not done.
pub const SE_EVENT_PENDING: SE_EventStatus = 2;
/// The work before the event is done, or the event was never recorded.
pub const SE_EVENT_COMPLETE: SE_EventStatus = 3;

crate::layout::records! {
    /// A range of device memory.
    ///
    /// The host takes `opaque` for an address: it slices allocations by adding to it. For all calls
    /// except `allocate` it creates the struct again from the address, so `payload` is lost. It
    /// logs an error if `allocate` leaves a `struct_size` of 0.
    pub struct SP_DeviceMemoryBase, SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, ext {
        /// The address; null for none.
        pub opaque: *mut c_void,
        /// The size in bytes. Of the copy in a copy; 0 in `deallocate`.
        pub size: u64,
        /// Free for the plugin in the header; 0 in every call of the host.
        pub payload: u64,
    }

    /// One device. The host copies it after `create_device`, so only its content has an identity. The
    /// strings outlive the device. A `struct_size` of 0 makes the device fail (and TensorFlow 2.12 and 2.13 abort);
    /// `ext` is free for the plugin.
    pub struct SP_Device, SP_DEVICE_STRUCT_SIZE, ext {
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

    /// Parameters of `create_device`.
    pub struct SE_CreateDeviceParams, SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, ext {
        /// Index of the device to create, from 0.
        pub ordinal: i32,
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub device: *mut SP_Device,
    }

    /// Functions that describe a device. Each may be null; a negative result means "unknown".
    pub struct SP_DeviceFns, SP_DEVICE_FNS_STRUCT_SIZE, ext {
        /// Returns the NUMA node that the device is attached to.
        fn get_numa_node(device: Device) -> i32;
        /// Returns the bandwidth of the device's own memory in bytes per second.
        fn get_memory_bandwidth(device: Device) -> i64;
        /// Returns the estimated floating-point operations per nanosecond. Never called.
        fn get_gflops(device: Device) -> f64;
    }

    /// Parameters of `create_device_fns`.
    pub struct SE_CreateDeviceFnsParams, SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE, ext {
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub device_fns: *mut SP_DeviceFns,
    }
}
