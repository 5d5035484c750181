//! The engine and the ops of TensorFlow devices on GPUs: a plugin adds a [`Backend`](backend::Backend) for an API such as Vulkan,
//! CUDA or OpenCL.
//!
//! The crate has memory with checked addresses, batches and staging, streams, events, callbacks, errors that stay, a
//! watchdog, profiles, a graph pass that fuses elementwise ops, and [more than 200 ops](ops). Their
//! programs are written in GLSL, and backends take them in [their own language](backend::Shader).
//!
//! ```text
//! plugin!  Platform ── Gpus ── GpuDevice ── GpuStream ── Queue ── Batch ─┐
//!                                kernels ── Launch ───────┘              ├── Backend: the plugin's
//!                                           programs, memory ────────────┘
//! ```
//!
//! A plugin is a `cdylib` with an `impl Backend` and a call of [`plugin!`].
//!
//! `backend` is the layer above the driver; the other modules know no API. `kernels` enqueue `shaders` by `launch`.

#![warn(missing_debug_implementations)]

mod address_map;
pub mod backend;
mod cache;
mod device;
#[expect(unsafe_code, reason = "initialisers of drivers")]
pub mod drivers;
mod fusion;
mod gpus;
mod health;
mod kernels;
pub mod launch;
mod peers;
mod queue;
pub mod settings;
mod stream;
pub mod translate;

pub use cache::Cache;
pub use device::GpuDevice;
pub use fusion::Fusion;
pub use gpus::{GpuPlatform, Gpus, device_type, timeline};
#[doc(hidden)]
pub use kernels::bench;
pub use kernels::groups as ops;
pub use stream::{GpuEvent, GpuStream};

/// Used by the macros' output only; it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use se_plugin;
    pub use se_plugin::device_plugin;
    pub use se_plugin::kernel::DType;
}
