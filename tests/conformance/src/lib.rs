//! The model of the SDK, under the names that tests of several crates know.

#![forbid(unsafe_code)]

pub use tf_fs_plugin::testing::model;
pub use tf_fs_plugin::testing::model::{Name, Op, config, run, sequence};
