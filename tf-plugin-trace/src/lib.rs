//! The library that `cargo tf-plugin run --trace` puts between TensorFlow and a plugin.
//!
//! A shared library with [`export!`] is loaded before everything else (`LD_PRELOAD`) and replaces `dlsym`. Wherever
//! TensorFlow looks up an entry point of a plugin (`TF_InitPlugin`, `SE_InitPlugin`, `TF_InitKernel`, `TF_InitGraph`,
//! `TF_InitProfiler`), it gets a wrapper, which calls the plugin's and then wraps each function that the plugin has
//! filled in. `TF_NewKernelBuilder` does so with kernels. The plugin is an unchanged file, in any language, and is
//! loaded from its place. Functions that the plugin does not have stay null, tables keep their sizes, and arguments,
//! results, statuses, `errno` and C++ exceptions pass unchanged.
//!
//! Every call becomes a line, or an event of a file for Chrome's viewers, and is counted; the counts are printed when
//! the process ends. No lock is held anywhere, so processes may fork at any time. The contents of files and the values
//! of options are never written; of an address with a password, the part before the `@` is not.
//!
//! Environment variables select what is traced; see [`settings`]. Linux on x86-64 and AArch64 only;
//! elsewhere the crate is empty.

#![cfg(target_os = "linux")]

mod call;
mod output;
pub mod settings;
mod totals;

#[doc(hidden)]
#[expect(unsafe_code, reason = "calls and wraps tables of C functions")]
pub mod abi;
