//! `tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h`: profilers of devices.
//!
//! `struct_size` follows the rules in [`stream_executor`](crate::stream_executor). Notes on behaviour
//! say what TensorFlow 2.12 to 2.21 really does.

use crate::layout::offset_of_end;
use crate::status::TF_Status;
use core::ffi::{c_char, c_void};

/// Major version of this API: differs if the two sides cannot work together.
pub const TP_MAJOR: i32 = 0;
/// Minor version of this API.
pub const TP_MINOR: i32 = 0;
/// Patch version of this API.
pub const TP_PATCH: i32 = 1;

/// A profiler. The host copies it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TP_Profiler {
    /// [`TP_PROFILER_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Free for the plugin.
    pub ext: *mut c_void,
    /// Type of the devices that it profiles, `[A-Z][A-Z_]*` (the host aborts otherwise),
    /// NUL-terminated; lives as long as the process.
    pub device_type: *const c_char,
}

/// Size in bytes of [`TP_Profiler`] up to the end of its last field.
pub const TP_PROFILER_STRUCT_SIZE: usize = offset_of_end!(TP_Profiler, device_type);

/// The callbacks of a profiler; all three are required.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TP_ProfilerFns {
    /// [`TP_PROFILER_FNS_STRUCT_SIZE`].
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// Starts collecting.
    pub start: Option<unsafe extern "C" fn(profiler: *const TP_Profiler, status: *mut TF_Status)>,
    /// Stops collecting.
    pub stop: Option<unsafe extern "C" fn(profiler: *const TP_Profiler, status: *mut TF_Status)>,
    /// Hands over what was collected, a serialised `XSpace`. The first call has a null `buffer` and
    /// requests the size in bytes: `size_in_bytes` is uninitialised and always to be set, 0 for
    /// nothing. If it is not 0, a second call has a buffer of that size.
    pub collect_data_xspace: Option<
        unsafe extern "C" fn(
            profiler: *const TP_Profiler,
            buffer: *mut u8,
            size_in_bytes: *mut usize,
            status: *mut TF_Status,
        ),
    >,
}

/// Size in bytes of [`TP_ProfilerFns`] up to the end of its last field.
pub const TP_PROFILER_FNS_STRUCT_SIZE: usize = offset_of_end!(TP_ProfilerFns, collect_data_xspace);

/// Filled by `TF_InitProfiler`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_ProfilerRegistrationParams {
    /// [`TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE`], from the host.
    pub struct_size: usize,
    /// Reserved.
    pub ext: *mut c_void,
    /// The host's [`TP_MAJOR`].
    pub major_version: i32,
    /// The host's [`TP_MINOR`].
    pub minor_version: i32,
    /// The host's [`TP_PATCH`].
    pub patch_version: i32,
    /// The host's, to be filled by the plugin.
    pub profiler: *mut TP_Profiler,
    /// The host's, to be filled by the plugin.
    pub profiler_fns: *mut TP_ProfilerFns,
    /// To be set by the plugin. The host calls it twice while it loads the plugin and uses the
    /// profiler afterwards: it must free nothing.
    pub destroy_profiler: Option<unsafe extern "C" fn(profiler: *mut TP_Profiler)>,
    /// To be set by the plugin; as `destroy_profiler`.
    pub destroy_profiler_fns: Option<unsafe extern "C" fn(profiler_fns: *mut TP_ProfilerFns)>,
}

/// Size in bytes of [`TF_ProfilerRegistrationParams`] up to the end of its last field.
pub const TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE: usize =
    offset_of_end!(TF_ProfilerRegistrationParams, destroy_profiler_fns);

/// Type of the function `TF_InitProfiler` that a plugin exports. An error **aborts the process**.
pub type TF_InitProfilerFn =
    unsafe extern "C" fn(params: *mut TF_ProfilerRegistrationParams, status: *mut TF_Status);
