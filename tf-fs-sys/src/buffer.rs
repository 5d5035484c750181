//! `tensorflow/c/tf_buffer.h`: a block of bytes, most often a serialised protocol buffer.

use core::ffi::c_void;

/// A block of bytes and how it is freed.
///
/// Code that creates one without `TF_NewBufferFromString` sets all three fields; `TF_DeleteBuffer`
/// calls `data_deallocator` if it is set, then frees the struct.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_Buffer {
    /// The first byte; null if there are none.
    pub data: *const c_void,
    /// Number of bytes.
    pub length: usize,
    /// Frees `data`; null if nothing is to be freed.
    pub data_deallocator: Option<unsafe extern "C" fn(data: *mut c_void, length: usize)>,
}

crate::layout::host_functions! {
    /// The functions of `tf_buffer.h`, in `libtensorflow_framework.so.2`.
    pub struct BufferFunctions {
        /// Creates a buffer with a copy of `proto_len` bytes.
        /// [`TF_DeleteBuffer`](Self::TF_DeleteBuffer) frees both.
        required fn TF_NewBufferFromString(proto: *const c_void, proto_len: usize) -> *mut TF_Buffer;
        /// Creates an empty buffer for a function to fill, which
        /// [`TF_DeleteBuffer`](Self::TF_DeleteBuffer) frees.
        required fn TF_NewBuffer() -> *mut TF_Buffer;
        /// Frees a buffer and, by its deallocator, the bytes; null is allowed.
        required fn TF_DeleteBuffer(buffer: *mut TF_Buffer);
        /// Returns the fields of a buffer, which keeps the bytes.
        required fn TF_GetBuffer(buffer: *mut TF_Buffer) -> TF_Buffer;
    }
}
