//! What TensorFlow calls, and what calls the plugin.

mod device;
mod entry;
mod filesystem;
mod kernel;
mod look;
mod slots;
pub(crate) mod system;
mod tables;
mod texts;
mod words;

#[cfg(test)]
pub(crate) mod tests;

#[doc(hidden)]
pub use entry::begin;
#[doc(hidden)]
pub use kernel::{
    construction_failure, context_failure, new_async_kernel_builder, new_kernel_builder,
};
#[doc(hidden)]
pub use look::look;
