//! `/device:RUST_GPU:0`: a card with Vulkan 1.3, as a TensorFlow device.
//!
//! It has memory, copies, fills, streams, events and host callbacks. It has no kernels yet.
//!
//! | Environment variable | Meaning |
//! |---|---|
//! | `RUST_GPU_CARD` | part of the name of the card to use, such as `radeon`; without it, the first card that is not software |
//!
//! `abi` is the layer above Vulkan and holds all `unsafe`; the other modules know nothing of Vulkan.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "calls of Vulkan; every block is argued")]
mod abi;
mod device;
mod queue;
mod regions;
mod stream;

pub use device::{GpuDevice, GpuPlatform};
pub use stream::{GpuEvent, GpuStream};
