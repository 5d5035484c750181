//! `tensorflow/c/logging.h`: writing to TensorFlow's log. TensorFlow 2.21 has neither the header nor the
//! functions.

use crate::layout::Text;
use core::ffi::c_int;

/// Severity of a log line: one of the constants of this module.
pub type TF_LogLevel = core::ffi::c_uint;

/// For information. Shown unless `TF_CPP_MIN_LOG_LEVEL` is at least 1.
pub const TF_INFO: TF_LogLevel = 0;
/// Something may be wrong.
pub const TF_WARNING: TF_LogLevel = 1;
/// Something is wrong.
pub const TF_ERROR: TF_LogLevel = 2;
/// Ends the process with SIGABRT once the line is written.
pub const TF_FATAL: TF_LogLevel = 3;

crate::layout::host_functions! {
    /// The functions of `logging.h`, in `libtensorflow_framework.so.2` up to TensorFlow 2.20. Each
    /// takes a `printf` format, NUL-terminated, and its arguments; a text that is not a constant belongs
    /// behind the format `%s`.
    pub struct LoggingFunctions {
        /// Writes a line of the given severity.
        optional fn TF_Log(level: TF_LogLevel, fmt: Text; ...);
        /// Writes a line if the user requested this much detail (`TF_CPP_MAX_VLOG_LEVEL`).
        optional fn TF_VLog(level: c_int, fmt: Text; ...);
        /// Writes a line as `TF_VLog` does, for debug builds of TensorFlow.
        optional fn TF_DVLog(level: c_int, fmt: Text; ...);
    }
}
