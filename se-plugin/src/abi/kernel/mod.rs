//! Kernels in the C API: the functions that the host calls, and those of the host. `crate::kernel` is built on this.

pub(crate) mod construction;
pub(crate) mod context;
pub(crate) mod cpu_op;
pub(crate) mod host_tensor;
pub(crate) mod ops;
pub(crate) mod register;
pub(crate) mod session;
pub(crate) mod shapes;
pub(crate) mod status;
pub(crate) mod tensor;
pub(crate) mod trampoline;
pub(crate) mod variables;
pub(crate) mod variants;
