//! `/device:RUST_REF:0`: a device on the host, as the reference for a complete device plugin.
//!
//! Its memory is host memory at addresses that the host cannot read or write. Its streams are threads, which
//! do the work later. So code that does not wait for the work, or that accesses device memory from the host,
//! fails as it would on a real device. The kernels are enough to train a small network.
//!
//! | Environment variable | Meaning |
//! |---|---|
//! | `REFDEVICE_DEVICES` | number of devices; 1 by default |
//! | `REFDEVICE_MEMORY` | memory of each, such as `512MiB`; 4 GiB by default |
//! | `REFDEVICE_DELAY_US` | longest random delay of a task in microseconds; 0 by default |
//! | `REFDEVICE_SEED` | seed of the random delays; 0 by default |
//! | `REFDEVICE_GUARD` | `0` lets the host read and write the memory |
//! | `REFDEVICE_COUNTERS` | a file to which each device writes how often each of its tasks ran, kernels and copies, whenever it is synchronized or a tensor is copied to the host |
//!
//! `math` is the arithmetic, which does not depend on devices; `kernels` connects it to TensorFlow's operations.

#![forbid(unsafe_code)]

mod config;
mod device;
mod kernels;
pub mod math;
mod timeline;

pub use device::{RefDevice, RefPlatform};
