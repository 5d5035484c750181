//! The functions of `tensorflow/c/c_api.h` that load a filesystem plugin and name the release.

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
        /// The release, as in `2.21.0` or `2.22.0-rc1`: a static text. Never null.
        optional fn TF_Version() -> *const c_char;
    }
}
