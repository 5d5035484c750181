//! What `cargo tf-plugin run --trace` puts between TensorFlow and a plugin.
//!
//! A shared library with [`export!`] is loaded before everything else (`LD_PRELOAD`). It has a `dlsym` of its own, so
//! that TensorFlow, wherever it asks a plugin for an entry point (`TF_InitPlugin`, `SE_InitPlugin`, `TF_InitKernel`,
//! `TF_InitGraph`, `TF_InitProfiler`), gets one that calls the plugin's and then puts itself in front of each function
//! that the plugin has filled in; and a `TF_NewKernelBuilder` that does so with kernels. The plugin is the file that it
//! is, whatever language it is written in, and is loaded from where it is. What the plugin does not have stays absent,
//! tables keep their sizes, and arguments, results, statuses, `errno` and C++ exceptions pass unchanged.
//!
//! Every call becomes a line, or an event of a file for Chrome's viewers, and is counted; the counts are printed when
//! the process ends. No lock is held anywhere, so that processes may fork at any time. The contents of files and the
//! values of options are never written; of an address with a password the part before the `@` is not.
//!
//! The environment says what is wanted; see [`settings`]. Linux on x86-64 and AArch64 only; elsewhere the
//! crate is empty.

#![cfg(target_os = "linux")]

mod call;
mod output;
pub mod settings;
mod totals;

#[doc(hidden)]
pub mod abi;
