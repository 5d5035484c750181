//! The function of `tensorflow/c/c_api.h` that lists the kernels of an op.

use crate::buffer::TF_Buffer;
use crate::layout::{Status, Text};

crate::layout::host_functions! {
    /// The kernels that are registered, in `libtensorflow_cc.so.2`.
    pub struct RegisteredKernelsFunctions {
        /// Returns the kernels of an op, a serialised `KernelList` for `TF_DeleteBuffer` to free; null on an error.
        required fn TF_GetRegisteredKernelsForOp(name: Text, status: Status) -> *mut TF_Buffer;
    }
}
