//! What TensorFlow 2.22 has in addition to [`stream_executor`](crate::stream_executor), as 2.22.0rc0 declares it.

use crate::c_api_macros::TF_Bool;
use crate::layout::Status;
use crate::stream_executor::{SP_Device, SP_Stream};
use crate::stream_executor_fns::{SP_STREAMEXECUTOR_STRUCT_SIZE, SP_StreamExecutor};
use core::ffi::c_int;

crate::layout::records! {
    /// Options of a new stream.
    pub struct SP_StreamOptions, SP_STREAM_OPTIONS_STRUCT_SIZE, ext {
        /// Whether `priority` counts.
        pub has_priority: TF_Bool,
        /// The priority.
        pub priority: c_int,
    }

    /// [`SP_StreamExecutor`] in TensorFlow 2.22 and later. Only a host whose `struct_size` covers
    /// it has room for the last field.
    pub struct SP_StreamExecutorWithStreamOptions {
        /// The fields of all releases; its `struct_size` is that of the whole.
        pub executor: SP_StreamExecutor,
        /// Creates a stream as `create_stream` does, with options.
        fn create_stream_with_options(
            device: *const SP_Device, options: *const SP_StreamOptions, stream: *mut SP_Stream, status: Status
        );
    }
}

/// Size in bytes of [`SP_StreamExecutorWithStreamOptions`] up to the end of its last field.
pub const SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE: usize =
    size_of::<SP_StreamExecutorWithStreamOptions>();

// The field is where the header has it: after the last one of the others.
const _: () = assert!(
    core::mem::offset_of!(SP_StreamExecutorWithStreamOptions, create_stream_with_options)
        == SP_STREAMEXECUTOR_STRUCT_SIZE
);
