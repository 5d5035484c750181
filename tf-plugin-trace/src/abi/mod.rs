//! The wrappers, which TensorFlow calls and which call the plugin.

mod begun;
mod builders;
mod device;
mod entry;
mod filesystem;
mod kernel;
mod look;
mod process;
mod said;
#[cfg(test)]
mod samples;
mod slots;
mod symbols;
pub(crate) mod system;
mod tables;
mod texts;
mod words;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use builders::{failure, new_builder};
#[doc(hidden)]
pub use look::look;
#[doc(hidden)]
pub use process::begin;
