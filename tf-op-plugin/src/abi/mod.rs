//! Ops and kernels in the C API: the functions that the host calls, and those of the host.

pub(crate) mod aligned_vec;
pub(crate) mod construction;
pub(crate) mod cpu;
pub(crate) mod host_strings;
pub(crate) mod host_tensor;
pub(crate) mod library;
mod memory;
pub(crate) mod ops;
pub(crate) mod register;
pub(crate) mod session_config;
pub(crate) mod shapes;
pub(crate) mod status;
pub(crate) mod string_vec;
pub(crate) mod tensor;
#[cfg(test)]
pub(crate) mod test_target;
pub(crate) mod trampoline;
mod tstring;
