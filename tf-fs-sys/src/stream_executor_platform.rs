//! Platforms and their registration in `tensorflow/c/experimental/stream_executor/stream_executor.h`. The rules in
//! [`stream_executor`](crate::stream_executor) hold here too.

use crate::c_api_macros::TF_Bool;
use crate::layout::{Status, Text};
use crate::stream_executor::{
    SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SP_Device, SP_DeviceFns, SP_TimerFns,
};
use crate::stream_executor_fns::{SE_CreateStreamExecutorParams, SP_StreamExecutor};
use core::ffi::c_int;

type Platform = *const SP_Platform;

crate::layout::records! {
    /// A kind of device that a plugin offers. The host aborts unless name and type are each
    /// `[A-Z][A-Z_]*`, the name is new (compared without case) and so is the type. `ext` is free for the plugin.
    pub struct SP_Platform, SP_PLATFORM_STRUCT_SIZE, ext {
        /// Name of the platform, NUL-terminated; lives as long as the process.
        pub name: Text,
        /// Type of its devices, as in `/device:TYPE:0`, NUL-terminated; lives as long as the process.
        pub r#type: Text,
        /// Whether there is unified memory. Nothing uses it.
        pub supports_unified_memory: TF_Bool,
        /// Whether the host allocates large regions and divides them by itself ("best fit with
        /// coalescing"), in stream order. Otherwise each tensor is an allocation, and is deallocated while
        /// enqueued work still uses it.
        pub use_bfc_allocator: TF_Bool,
        /// Whether the regions grow as needed, even if the user set it otherwise; without it the
        /// first one takes all. Not in a host before TensorFlow 2.10.
        pub force_memory_growth: TF_Bool,
    }

    /// The callbacks of a platform.
    pub struct SP_PlatformFns, SP_PLATFORM_FNS_STRUCT_SIZE, ext {
        /// Writes the number of devices, always the same: the host calls it many times. An error is
        /// logged and counts as 0. The host calls it without checking that it is not null.
        fn get_device_count(platform: Platform, device_count: *mut c_int, status: Status);
        /// Creates a device. TensorFlow 2.12 and 2.13 abort on an error, later ones raise it in Python.
        fn create_device(platform: Platform, params: *mut SE_CreateDeviceParams, status: Status);
        /// Frees what `create_device` put into the fields; not the struct.
        fn destroy_device(platform: Platform, device: *mut SP_Device);
        /// Fills in the functions that describe devices; runs at load.
        fn create_device_fns(platform: Platform, params: *mut SE_CreateDeviceFnsParams, status: Status);
        /// Frees what `create_device_fns` put into the fields; not the struct.
        fn destroy_device_fns(platform: Platform, device_fns: *mut SP_DeviceFns);
        /// Fills in the callbacks of devices; runs once, at load.
        fn create_stream_executor(platform: Platform, params: *mut SE_CreateStreamExecutorParams, status: Status);
        /// Frees what `create_stream_executor` put into the fields; not the struct.
        fn destroy_stream_executor(platform: Platform, stream_executor: *mut SP_StreamExecutor);
        /// Fills in the functions of timers; runs at load, in TensorFlow 2.12 and 2.13 only.
        fn create_timer_fns(platform: Platform, timer: *mut SP_TimerFns, status: Status);
        /// Frees what `create_timer_fns` put into the fields; not the struct.
        fn destroy_timer_fns(platform: Platform, timer_fns: *mut SP_TimerFns);
    }

    /// Filled by `SE_InitPlugin`.
    pub struct SE_PlatformRegistrationParams, SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE, ext {
        /// The host's [`SE_MAJOR`](crate::SE_MAJOR).
        pub major_version: i32,
        /// The host's [`SE_MINOR`](crate::SE_MINOR).
        pub minor_version: i32,
        /// The host's [`SE_PATCH`](crate::SE_PATCH).
        pub patch_version: i32,
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub platform: *mut SP_Platform,
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub platform_fns: *mut SP_PlatformFns,
        /// Frees what the plugin put into the fields of `platform`, not the struct; set by the plugin.
        fn destroy_platform(platform: *mut SP_Platform);
        /// Frees what the plugin put into the fields of `platform_fns`, not the struct; set by the plugin.
        fn destroy_platform_fns(platform_fns: *mut SP_PlatformFns);
    }
}

/// Type of the function `SE_InitPlugin` that a plugin exports. The host calls it for each load of the
/// shared library, and **aborts the process** on an error: a plugin that cannot work fills everything
/// in and reports 0 devices.
pub type SE_InitPluginFn =
    unsafe extern "C" fn(params: *mut SE_PlatformRegistrationParams, status: Status);
