//! `/device:RUST_REF:0`: a device on the host, as the reference for a complete device plugin.
//!
//! Its memory is the host's, at addresses that the host cannot read or write; its streams are threads,
//! which do the work later. So it shows what a real device would: whatever does not wait, or takes device
//! memory for its own, fails. Kernels are there for all that a small network needs to be trained.
//!
//! | Environment variable | Meaning |
//! |---|---|
//! | `REFDEVICE_DEVICES` | number of devices; 1 by default |
//! | `REFDEVICE_MEMORY` | memory of each, such as `512MiB`; 4 GiB by default |
//! | `REFDEVICE_DELAY_US` | longest random delay of a task in microseconds; 0 by default |
//! | `REFDEVICE_SEED` | where the random delays start; 0 by default |
//! | `REFDEVICE_GUARD` | `0` lets the host read and write the memory |
//! | `REFDEVICE_COUNTERS` | a file to which each device writes how often each of its tasks ran, kernels and copies, whenever it is synchronized or a tensor is copied to the host |
//!
//! `math` computes, and knows nothing of devices; `kernels` ties it to TensorFlow's operations.

#![forbid(unsafe_code)]

mod config;
mod device;
mod kernels;
pub mod math;
mod timeline;

pub use device::{RefDevice, RefPlatform};
