//! Kernels: what the host calls for them, and what they ask of the host.

pub(crate) mod construction;
pub(crate) mod context;
pub(crate) mod op;
pub(crate) mod plain;
pub(crate) mod register;
pub(super) mod status;
pub(crate) mod tensor;
pub(crate) mod trampoline;
pub(crate) mod variables;
