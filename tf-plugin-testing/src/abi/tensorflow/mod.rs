//! TensorFlow's C library in this process, as safe functions: what a program in C calls.

mod eager;
mod files;
mod library;
mod tensor;

pub use eager::{Context, Handle};
pub use library::{Device, TensorFlow};
