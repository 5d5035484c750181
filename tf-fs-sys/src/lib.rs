//! TensorFlow's plugin C ABI, and nothing else.
//!
//! One module a C header, written by hand, with the names of the headers:
//!
//! | Module | Header |
//! |---|---|
//! | [`status`] | `tensorflow/c/tf_status.h` |
//! | [`file_statistics`] | `tensorflow/c/tf_file_statistics.h` |
//! | [`filesystem`] | `tensorflow/c/experimental/filesystem/filesystem_interface.h` |
//! | `registration` | the function of `tensorflow/c/c_api.h` that loads a filesystem plugin |
//!
//! The crate links against no TensorFlow. The functions that TensorFlow provides (`TF_SetStatus` …)
//! sit in tables of function pointers that are filled on first use from the libraries which the
//! process has already loaded; see the module `host`. So one binary loads in every TensorFlow, and also in a
//! process without any.
//!
//! Without the default feature `host` the crate is `no_std` and only holds types and constants.
//!
//! The layouts are those of TensorFlow 2.12 to 2.21, in which the three headers do not differ; the
//! workspace's ABI test compares each size, alignment, field offset and constant with the headers of
//! an installed TensorFlow.

#![no_std]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "host")]
extern crate std;

pub mod file_statistics;
pub mod filesystem;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "host")]
pub mod registration;
pub mod status;

pub use file_statistics::*;
pub use filesystem::*;
pub use status::*;
