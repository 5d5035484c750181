//! The function of `tensorflow/c/c_api_experimental.h` that loads a device plugin.

use crate::layout::{Status, Text};

crate::layout::opaque! {
    /// A plugin that was loaded. Opaque.
    pub struct TF_Library;
}

crate::layout::host_functions! {
    /// The functions that load a device plugin into this process, in `libtensorflow_cc.so.2`.
    pub struct DeviceRegistrationFunctions {
        /// Opens the shared library and calls those of `SE_InitPlugin`, `TF_InitKernel`, `TF_InitGraph` and
        /// `TF_InitProfiler` that it has. Null with another status than `TF_OK`.
        required fn TF_LoadPluggableDeviceLibrary(library_filename: Text, status: Status) -> *mut TF_Library;
        /// Frees the handle of a library, which stays loaded.
        required fn TF_DeletePluggableDeviceLibraryHandle(lib_handle: *mut TF_Library);
    }
}
