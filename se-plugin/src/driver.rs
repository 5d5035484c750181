//! Loads the libraries of drivers next to TensorFlow, and ends processes in which they compute.
//!
//! Most crates for an API, such as `ash` for Vulkan, open its library with `dlopen` alone. In a process with
//! TensorFlow the driver below may then call TensorFlow's copy of LLVM, and end the process. [`Library`] prevents it.

pub use crate::abi::driver::Library;
pub use crate::abi::exit::{exit_at_once_if, exit_before_others};
