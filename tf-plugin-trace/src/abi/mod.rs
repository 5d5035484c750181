//! The wrappers, which TensorFlow calls and which call the plugin.

mod auto_format;
mod call_guard;
mod device;
mod dlsym_hook;
mod entry_points;
mod filesystem;
mod format;
mod kernel;
mod kernel_hooks;
mod object_names;
mod process;
#[cfg(test)]
mod samples;
mod slots;
mod symbols;
pub(crate) mod system;
mod tables;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use dlsym_hook::dlsym_hook;
#[doc(hidden)]
pub use kernel_hooks::{failure, new_builder};
#[doc(hidden)]
pub use process::begin;
