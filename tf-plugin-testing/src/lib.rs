//! Test TensorFlow plugins without TensorFlow.
//!
#![cfg_attr(feature = "filesystem", doc = "- [`filesystem`]: a host for filesystems,")]
#![cfg_attr(
    feature = "filesystem",
    doc = "  [`filesystem::conformance!`], a model with random operations, and faults on demand."
)]
#![cfg_attr(feature = "device", doc = "- [`device`]: a host for devices,")]
#![cfg_attr(feature = "device", doc = "  [`device::conformance!`], and faults on demand.")]
#![cfg_attr(
    feature = "ops",
    doc = "- [`ops`]: a host for ops, and [`ops::conformance!`], whose cases call"
)]
#![cfg_attr(feature = "ops", doc = "  them in a real TensorFlow.")]
//!
//! Each is a feature of this crate, and none is on by default. A plugin has this crate in its
//! `dev-dependencies` only.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "filesystem", feature = "device", feature = "ops")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        unused_macros,
        reason = "what the hosts share; with all of them all is used"
    )
)]

#[expect(unsafe_code, reason = "the host's side of the C boundary")]
mod abi;
#[macro_use]
mod cases;
mod deviation;
#[macro_use]
mod tensorflow;
#[cfg(feature = "device")]
#[cfg_attr(docsrs, doc(cfg(feature = "device")))]
#[warn(missing_debug_implementations)]
pub mod device;
mod faults;
#[cfg(feature = "filesystem")]
#[cfg_attr(docsrs, doc(cfg(feature = "filesystem")))]
pub mod filesystem;
#[cfg(feature = "ops")]
#[cfg_attr(docsrs, doc(cfg(feature = "ops")))]
#[warn(missing_debug_implementations)]
pub mod ops;
mod options;
mod outcome;
mod tensor;
mod threads;
mod violations;

/// Shared code of this repository's tests and the cases. Not for other use: it changes without
/// notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::processes::{in_a_child, threads_start};
    pub use crate::abi::tensorflow::{Context, Device, Handle, TensorFlow};
    pub use crate::tensor::{Content, Tensor};
    #[cfg(feature = "filesystem")]
    pub use tf_fs_plugin::__private::{Registration, Scheme};
}

/// Runs the examples of the chapter on testing.
#[cfg(all(doctest, feature = "filesystem", feature = "device"))]
#[doc = include_str!("../../docs/testing.md")]
struct Testing;
