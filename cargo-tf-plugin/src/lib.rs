//! The implementation of the command `cargo tf-plugin`, as a library that tests can use. It changes
//! with the command, also in ways that break semantic versioning.
//!
//! [`TensorFlow`] is the part that others need: a real TensorFlow with its Python, headers and libraries, taken from
//! the user or installed on first use. [`Packages`] are other Python packages that tests need.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use cargo_tf_plugin::{NEWEST, TensorFlow};
//!
//! let tensorflow = TensorFlow::pinned(NEWEST)?;
//! let framework = tensorflow.library_dir().join("libtensorflow_framework.so.2");
//! # Ok(())
//! # }
//! ```

// Standard output may be closed: `output` writes to it, so that nothing panics.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// Hidden items are only for this package's program, and for tests of this repository.
mod artefact;
#[doc(hidden)]
pub mod bench;
mod build;
pub mod commands;
mod coverage;
mod elf_notes;
mod explain;
mod findings;
pub mod host;
mod install;
mod interrupt;
mod operations;
mod ops;
mod output;
mod packages;
mod pinned;
mod platform;
#[doc(hidden)]
pub mod probe;
mod project;
mod python;
mod releases;
mod render;
mod report;
mod secrets;
#[doc(hidden)]
pub mod tables;
mod template;
mod tensorflow;
mod trace;
mod wheel;
pub mod workspace;

#[doc(hidden)]
pub use artefact::Artefact;
pub use build::forget_package;
pub use packages::Packages;
pub use tensorflow::{CANDIDATES, MATRIX, NEWEST, TensorFlow};
