//! Kernels: what a device can compute.
//!
//! A kernel implements an op of TensorFlow's for the devices of a platform. Implement [`Kernel`] and put
//! [`#[kernel]`](macro@crate::kernel) on the `impl`; when the plugin is loaded it is registered.
//!
//! ```
//! use se_plugin::prelude::*;
//! use std::marker::PhantomData;
//! # use se_plugin::host::{HostDevice, HostMemory};
//! # struct MyPlatform;
//! # impl Platform for MyPlatform {
//! #     const NAME: &'static str = "MY_DEVICE";
//! #     const TYPE: &'static str = "MY_DEVICE";
//! #     type Device = HostDevice;
//! #     fn new() -> Result<Self> { Ok(Self) }
//! #     fn device_count(&self) -> Result<usize> { Ok(1) }
//! #     fn open(&self, _: usize) -> Result<HostDevice> { Ok(HostDevice::new(HostMemory::new(1 << 20)?)) }
//! # }
//!
//! struct ZerosLike<T>(PhantomData<T>);
//!
//! #[kernel(op = "ZerosLike", types(T = [f32, f64]))]
//! impl<T: Element> Kernel for ZerosLike<T> {
//!     type Platform = MyPlatform;
//!
//!     fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
//!         Ok(Self(PhantomData))
//!     }
//!     fn compute(&self, context: &mut OpKernelContext<'_, MyPlatform>) -> Result<()> {
//!         let x = context.input(0)?;
//!         let y = context.output(0, x.shape())?;
//!         match y.ptr() {
//!             Some(at) => context.stream().fill(at, Pattern::Zero, y.bytes()),
//!             None => Ok(()),
//!         }
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! # What TensorFlow does not say
//! It takes nearly any registration and fails when the op runs, on every device. So the SDK compares
//! attributes and arguments with the op's definition, and refuses a kernel that matches the same nodes as
//! another; the log names both.
//!
//! # Kernels that are there without being written
//! TensorFlow has kernels for all devices, some of which read and write device memory from the host. For
//! `AssignAddVariableOp` and `AssignSubVariableOp` (`v.assign_add`, `v.assign_sub`) of types without a kernel
//! of the author's there is one that fails and names the missing kernel; for int32 `ZerosLike` and `OnesLike`
//! there are ones that work.
//!
//! # Variables
//! [`OpKernelContext::variables`] gives variables to change in place. TensorFlow 2.19 to 2.21 do not export what it
//! needs; kernels that are registered with `variables` are left out there.

mod element;
pub(crate) mod op;
mod partial_shape;
pub(crate) mod registry;
#[cfg(test)]
pub(crate) mod test_platform;
pub(crate) mod workarounds;

pub use crate::abi::kernel::construction::OpKernelConstruction;
pub use crate::abi::kernel::context::OpKernelContext;
pub use crate::abi::kernel::op::{ShapeHandle, ShapeInferenceContext};
pub use crate::abi::kernel::tensor::{DeviceTensor, HostTensor, HostTensorMut};
pub use crate::abi::kernel::variables::{Variables, host_has_variables};
pub use element::{DType, Element};
pub use op::{OpDefinition, OpDefinitionBuilder};
pub use partial_shape::PartialShape;
pub use registry::has_kernel;

use crate::abi::kernel::construction::Read;
use crate::platform::Platform;
use tf_plugin_core::Result;

/// One kernel: an op on a platform's devices. [`#[kernel]`](macro@crate::kernel) registers it.
///
/// TensorFlow makes one for each node of a graph, or for each op that Python calls with new attributes, and
/// runs it from several threads at a time.
pub trait Kernel: Sized + Send + Sync + 'static {
    /// The platform whose devices it is for.
    type Platform: Platform;

    /// Makes the kernel for a node.
    ///
    /// # Errors
    /// Become those of the op in Python.
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self>;

    /// Runs it: makes the outputs and enqueues the work, without waiting for it. With `Ok` all outputs must
    /// have been made.
    ///
    /// # Errors
    /// Become those of the op in Python.
    fn compute(&self, context: &mut OpKernelContext<'_, Self::Platform>) -> Result<()>;
}

/// A type of an attribute's value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an attribute type",
    note = "write `i64`, `i32`, `f32`, `bool`, `String`, `DType`, a `Vec` of one of these, `PartialShape` or \
            `HostTensor<f32>`"
)]
pub trait Attribute: Read {}

impl Attribute for i64 {}
impl Attribute for i32 {}
impl Attribute for f32 {}
impl Attribute for bool {}
impl Attribute for String {}
impl Attribute for DType {}
impl Attribute for Vec<i64> {}
impl Attribute for Vec<i32> {}
impl Attribute for Vec<f32> {}
impl Attribute for Vec<bool> {}
impl Attribute for Vec<String> {}
impl Attribute for Vec<DType> {}
impl Attribute for PartialShape {}
impl<T: Element> Attribute for HostTensor<T> {}
