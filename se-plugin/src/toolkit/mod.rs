//! The code that most kernels share: shapes, broadcasting, strides, slices, reductions and type rules.
//!
//! A device of any kind can use the modules of the first row:
//!
//! | Module | Contents | Runs on |
//! |---|---|---|
//! | [`shape`], [`mod@slice`], [`window`], [`einsum`], [`Broadcast`], [`number`] | shape inference, strides and type rules | any device: no access to elements in memory |
//! | [`loops`] | loops over slices: [`loops::zip`], [`loops::reduce`] | host memory |
//! | [`ops`] | whole kernels on a [`WorkerStream`](crate::host::WorkerStream): [`ops::unary`], [`ops::binary`], [`ops::reduce`] | [`HostDevice`](crate::host::HostDevice) |
//!
//! A complete `AddV2`, for all shapes that broadcast:
//!
//! ```
//! use se_plugin::prelude::*;
//! use se_plugin::toolkit::ops;
//! # use se_plugin::host::{HostDevice, HostMemory};
//! # struct MyPlatform;
//! # #[device_plugin]
//! # impl Platform for MyPlatform {
//! #     const NAME: &'static str = "MY_DEVICE";
//! #     const TYPE: &'static str = "MY_DEVICE";
//! #     type Device = HostDevice;
//! #     fn new() -> Result<Self> { Ok(Self) }
//! #     fn device_count(&self) -> Result<usize> { Ok(1) }
//! #     fn open(&self, _: usize) -> Result<HostDevice> { Ok(HostDevice::new(HostMemory::new(1 << 20)?)) }
//! # }
//!
//! struct Add;
//!
//! #[kernel(op = "AddV2", types(T = [f32]))]
//! impl Kernel for Add {
//!     type Platform = MyPlatform;
//!
//!     fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
//!         Ok(Self)
//!     }
//!     fn compute(&self, context: &mut OpKernelContext<'_, MyPlatform>) -> Result<()> {
//!         ops::binary(context, "AddV2", |a: f32, b: f32| a + b)
//!     }
//! }
//! # fn main() {}
//! ```

mod broadcast;
pub mod einsum;
pub mod loops;
pub mod number;
pub mod ops;
pub mod shape;
pub mod slice;
pub mod window;

pub use broadcast::{Broadcast, Strides};
pub use number::{Number, Real};
pub use shape::Shape;
