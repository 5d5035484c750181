//! TensorFlow's plugin C ABI, and nothing else.
//!
//! One module per C header, or part of one, written by hand, with the headers' names. Its first line names the header;
//! [`operations`] lists the operations of a filesystem for code that goes through all of them.
//!
//! The crate links against no TensorFlow. The functions that TensorFlow provides (`TF_SetStatus` …)
//! sit in tables of function pointers that are filled on first use from the libraries which the
//! process has already loaded; see the module `host`. So one binary loads in every TensorFlow, and also in a
//! process without any.
//!
//! Without the default feature `host` the crate is `no_std` and only holds types and constants.
//!
//! The layouts are those of TensorFlow 2.12 to 2.21, between which no struct of these headers differs, and
//! [`filesystem_2_22`] and [`stream_executor_2_22`] have what is different in 2.22 (2.22.0rc0);
//! functions and constants that some of these releases lack say so. The workspace's ABI test compares
//! each size, alignment, field offset, constant and function type with the headers of installed
//! TensorFlow releases.

#![no_std]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![expect(
    unsafe_code,
    reason = "TensorFlow's C ABI: tables of function pointers, and their lookup"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "host")]
extern crate std;

pub mod attrtype;
pub mod buffer;
pub mod c_api_macros;
pub mod ctstring;
pub mod datatype;
pub mod device_list;
pub mod device_registration;
pub mod eager;
pub mod env;
pub mod file_statistics;
pub mod filesystem;
pub mod filesystem_2_22;
pub mod filesystem_ops;
pub mod filesystem_registration;
pub mod grappler;
#[cfg(feature = "host")]
pub mod host;
pub mod kernels;
pub mod kernels_experimental;
mod layout;
pub mod logging;
pub mod operations;
pub mod ops;
pub mod profiler;
pub mod registered_kernels;
pub mod registration;
pub mod status;
pub mod stream_executor;
pub mod stream_executor_2_22;
pub mod stream_executor_fns;
pub mod stream_executor_platform;
pub mod string_view;
pub mod tensor;
pub mod tstring;

pub use attrtype::*;
pub use buffer::*;
pub use c_api_macros::*;
pub use ctstring::*;
pub use datatype::*;
pub use device_list::*;
pub use eager::*;
pub use env::*;
pub use file_statistics::*;
pub use filesystem::*;
pub use filesystem_2_22::*;
pub use filesystem_ops::*;
pub use filesystem_registration::*;
pub use grappler::*;
pub use kernels::*;
pub use kernels_experimental::*;
pub use layout::{Record, Versioned};
pub use logging::*;
pub use operations::*;
pub use ops::*;
pub use profiler::*;
pub use registered_kernels::*;
pub use status::*;
pub use stream_executor::*;
pub use stream_executor_2_22::*;
pub use stream_executor_fns::*;
pub use stream_executor_platform::*;
pub use string_view::*;
pub use tensor::*;
