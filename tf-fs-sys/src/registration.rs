//! The functions of `tensorflow/c/c_api.h` that load a filesystem plugin and name the release.

use crate::layout::{Status, Text};

crate::layout::host_functions! {
    /// How a shared library becomes a filesystem plugin of this process. In
    /// `libtensorflow_cc.so.2`.
    pub struct RegistrationFunctions {
        /// Opens the shared library at `path`, calls its `TF_InitPlugin` (each time it is called) and
        /// registers every scheme it offers. The first error is in `status`; schemes that were
        /// registered stay so.
        required fn TF_RegisterFilesystemPlugin(path: Text, status: Status);
        /// The release, as in `2.21.0` or `2.22.0-rc1`: a static text. Never null.
        optional fn TF_Version() -> Text;
    }
}
