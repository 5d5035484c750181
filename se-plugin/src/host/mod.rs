//! Ready-made parts of a device.
//!
//! [`HostDevice`] is a whole device on the host: [`HostMemory`] that the host cannot access, and
//! [`WorkerStream`]s that do their work later, as those of a real device do. Kernels, the platform and the
//! name are the author's:
//!
//! ```
//! use se_plugin::host::{HostDevice, HostMemory};
//! use se_plugin::prelude::*;
//!
//! struct MyPlatform;
//!
//! #[device_plugin]
//! impl Platform for MyPlatform {
//!     const NAME: &'static str = "MY_DEVICE";
//!     const TYPE: &'static str = "MY_DEVICE";
//!     type Device = HostDevice;
//!
//!     fn new() -> Result<Self> {
//!         Ok(Self)
//!     }
//!     fn device_count(&self) -> Result<usize> {
//!         Ok(1)
//!     }
//!     fn open(&self, _ordinal: usize) -> Result<HostDevice> {
//!         Ok(HostDevice::new(HostMemory::new(1 << 30)?))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The parts are also useful in tests: code that does not wait for the device gets an error or wrong numbers
//! here, most often with a [`Delay`].

mod allocator;
mod delay;
mod device;
mod event;
mod memory;
mod observer;
mod queue;
mod range;
mod stream;

pub use delay::Delay;
pub use device::HostDevice;
pub use event::WorkerEvent;
pub use memory::HostMemory;
pub use observer::{FinishedTask, Observer};
pub use range::DeviceRange;
pub use stream::WorkerStream;
