//! The function of `tensorflow/c/c_api.h` that loads a filesystem plugin.

use crate::status::TF_Status;
use core::ffi::c_char;

crate::host::host_functions! {
    /// How a shared library becomes a filesystem plugin of this process. In
    /// `libtensorflow_cc.so.2`.
    pub struct RegistrationFunctions {
        /// Opens the shared library at `path`, calls its `TF_InitPlugin` (each time it is called) and
        /// registers every scheme it offers. The first error is in `status`; schemes that were
        /// registered stay so.
        required fn TF_RegisterFilesystemPlugin(path: *const c_char, status: *mut TF_Status);
    }
}
