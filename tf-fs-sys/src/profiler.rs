//! `tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h`: profilers of devices.
//!
//! `struct_size` follows the rules in [`stream_executor`](crate::stream_executor). Notes on behaviour
//! say what TensorFlow 2.12 to 2.21 really does.

use crate::layout::{Status, Text};

type Profiler = *const TP_Profiler;

/// Major version of this API: differs if the two sides cannot work together.
pub const TP_MAJOR: i32 = 0;
/// Minor version of this API.
pub const TP_MINOR: i32 = 0;
/// Patch version of this API.
pub const TP_PATCH: i32 = 1;

crate::layout::records! {
    /// A profiler. The host copies it by value; `ext` is free for the plugin.
    pub struct TP_Profiler, TP_PROFILER_STRUCT_SIZE, ext {
        /// Type of the devices that it profiles, `[A-Z][A-Z_]*` (the host aborts otherwise),
        /// NUL-terminated; lives as long as the process.
        pub device_type: Text,
    }

    /// The callbacks of a profiler; all three are required.
    pub struct TP_ProfilerFns, TP_PROFILER_FNS_STRUCT_SIZE, ext {
        /// Starts collecting.
        fn start(profiler: Profiler, status: Status);
        /// Stops collecting.
        fn stop(profiler: Profiler, status: Status);
        /// Writes what was collected, a serialised `XSpace`. The first call has a null `buffer` and
        /// requests the size in bytes: `size_in_bytes` is uninitialised and must always be set, 0
        /// for nothing. If it is not 0, a second call has a buffer of that size.
        fn collect_data_xspace(profiler: Profiler, buffer: *mut u8, size_in_bytes: *mut usize, status: Status);
    }

    /// Filled by `TF_InitProfiler`.
    pub struct TF_ProfilerRegistrationParams, TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE, ext {
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
        /// Set by the plugin. The host calls it twice while it loads the plugin and uses the
        /// profiler afterwards: it must free nothing.
        fn destroy_profiler(profiler: *mut TP_Profiler);
        /// Set by the plugin; called like `destroy_profiler`: must free nothing.
        fn destroy_profiler_fns(profiler_fns: *mut TP_ProfilerFns);
    }
}

/// Type of the function `TF_InitProfiler` that a plugin exports. An error **aborts the process**.
pub type TF_InitProfilerFn =
    unsafe extern "C" fn(params: *mut TF_ProfilerRegistrationParams, status: Status);
