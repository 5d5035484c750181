//! The functions of `tensorflow/c/c_api.h` that load a filesystem plugin and name the release.

use crate::layout::{Status, Text};

crate::layout::host_functions! {
    /// The functions that load a filesystem plugin into this process, and name the release. In
    /// `libtensorflow_cc.so.2`.
    pub struct RegistrationFunctions {
        /// Opens the shared library at `path`, calls its `TF_InitPlugin` (each time it is called)
        /// and registers every scheme that it offers. The first error is in `status`; schemes that
        /// could be registered stay registered.
        required fn TF_RegisterFilesystemPlugin(path: Text, status: Status);
        /// Returns the release, such as `2.21.0` or `2.22.0-rc1`: a static text. Never null.
        optional fn TF_Version() -> Text;
    }
}
