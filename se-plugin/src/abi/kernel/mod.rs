//! Kernels of devices in the C API. `crate::kernel` is built on this, and it on `tf-op-plugin`.

pub(crate) mod context;
pub(crate) mod cpu_op;
mod host_inputs;
pub(crate) mod session;
pub(crate) mod target;
pub(crate) mod tensor;
pub(crate) mod variables;
pub(crate) mod variants;
