//! `tensorflow/c/tf_status.h`: the status object and its codes.

use crate::layout::{Status, Text};
use core::ffi::{c_char, c_int, c_uint, c_void};

crate::layout::opaque! {
    /// A status object of the host: a code, a message and payloads. Opaque; only ever behind a pointer.
    ///
    /// For each call into a plugin the host creates a new one, already `TF_OK`, and deletes it
    /// afterwards. A plugin must not keep the pointer.
    pub struct TF_Status;
}

/// A status code, one of the `TF_*` constants of this module (the C enum `TSL_Code`).
///
/// TensorFlow 2.12 aborts the process on a code outside `0..=16`.
pub type TF_Code = c_uint;

/// No error.
pub const TF_OK: TF_Code = 0;
/// The operation was cancelled, typically by the caller.
pub const TF_CANCELLED: TF_Code = 1;
/// An error with no better code.
pub const TF_UNKNOWN: TF_Code = 2;
/// An argument that is wrong in any state of the system.
pub const TF_INVALID_ARGUMENT: TF_Code = 3;
/// The deadline passed before the operation ended.
pub const TF_DEADLINE_EXCEEDED: TF_Code = 4;
/// A file, directory, token or key that does not exist.
pub const TF_NOT_FOUND: TF_Code = 5;
/// Something that was to be created exists already.
pub const TF_ALREADY_EXISTS: TF_Code = 6;
/// The caller may not do this.
pub const TF_PERMISSION_DENIED: TF_Code = 7;
/// A quota, the disk or the memory is used up.
pub const TF_RESOURCE_EXHAUSTED: TF_Code = 8;
/// The system is not in the state that the operation needs.
pub const TF_FAILED_PRECONDITION: TF_Code = 9;
/// The operation was aborted, typically by a conflict with another.
pub const TF_ABORTED: TF_Code = 10;
/// Past the valid range, such as the end of a file.
pub const TF_OUT_OF_RANGE: TF_Code = 11;
/// Not supported by this plugin.
pub const TF_UNIMPLEMENTED: TF_Code = 12;
/// A bug: an invariant does not hold.
pub const TF_INTERNAL: TF_Code = 13;
/// Not available now; a retry may help.
pub const TF_UNAVAILABLE: TF_Code = 14;
/// Data is lost or corrupt.
pub const TF_DATA_LOSS: TF_Code = 15;
/// The caller has no valid credentials.
pub const TF_UNAUTHENTICATED: TF_Code = 16;

/// Called once for each payload of a status with its key, its value (both NUL-terminated, valid
/// during the call) and the pointer that was given to `TF_ForEachPayload`.
pub type TF_PayloadVisitor =
    Option<unsafe extern "C" fn(key: *const c_char, value: *const c_char, capture: *mut c_void)>;

crate::layout::host_functions! {
    /// The functions of `tf_status.h`. All live in `libtensorflow_framework.so.2`. Required are those
    /// without which no plugin can work.
    pub struct StatusFunctions {
        /// Creates a status, `TF_OK`, which [`TF_DeleteStatus`](Self::TF_DeleteStatus) frees. Never null.
        required fn TF_NewStatus() -> Status;
        /// Frees a status; null is allowed.
        required fn TF_DeleteStatus(status: Status);
        /// Sets code and message. The message is copied; it must be non-null (TensorFlow up to 2.20
        /// crashes on null) and valid UTF-8 (Python raises `UnicodeDecodeError` in place of the
        /// error otherwise). Payloads set before are dropped.
        required fn TF_SetStatus(status: Status, code: TF_Code, message: Text);
        /// Adds a payload, both strings copied; does nothing on a `TF_OK` status.
        optional fn TF_SetPayload(status: Status, key: Text, value: Text);
        /// Sets the code that belongs to an `errno`, and `context: strerror` as the message.
        optional fn TF_SetStatusFromIOError(status: Status, error_code: c_int, context: Text);
        /// Returns the code.
        required fn TF_GetCode(status: *const TF_Status) -> TF_Code;
        /// Returns the message, empty for `TF_OK`. Borrowed from the status until its next change.
        required fn TF_Message(status: *const TF_Status) -> Text;
        /// Calls `visitor` for each payload. Not exported before TensorFlow 2.14.
        optional fn TF_ForEachPayload(status: *const TF_Status, visitor: TF_PayloadVisitor, capture: *mut c_void);
    }
}
