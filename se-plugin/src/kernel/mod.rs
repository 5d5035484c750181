//! Kernels: what a device can compute.
//!
//! A kernel implements an op of TensorFlow's for the devices of a platform. Implement [`Kernel`] and put
//! [`#[kernel]`](macro@crate::kernel) on the `impl`; it is registered when the plugin is loaded.
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
//! # Kernels of a library
//! A library of kernels does not know the plugins that will use it. Its kernels have the platform as a parameter, with the bound
//! that they need: `impl<P: Platform<Device = MyDevice>> Kernel for Relu<P>` with `type Platform = P`. The library lists them in
//! functions, by group, and a plugin registers the groups that it wants for its platform:
//! [`register_kernels!`](crate::register_kernels). The body of such a kernel is compiled again for each platform, unless it takes the
//! context without it: [`OpKernelContext::any_platform`].
//!
//! # Checks
//! TensorFlow accepts nearly any registration and fails when the op runs, on every device. So the SDK compares
//! attributes and arguments with the op's definition, and rejects a kernel that matches the same nodes as
//! another; the log names both.
//!
//! # Kernels that the SDK adds
//! For ops that read or change a variable in place (`v.assign_add`, `tf.gather(v, …)`, `ResourceApplyAdam`) of types without
//! a kernel of the author's, the SDK adds one that fails and says what to write: TensorFlow's kernel for all devices reads device
//! memory from the host, or there is none. In functions [the SDK's pass](crate::graph#the-sdks-pass) replaces these ops. For
//! int32 `ZerosLike` and `OnesLike` the SDK adds working kernels.
//!
//! For devices of the type `GPU` TensorFlow has kernels that compile with XLA, such as that of `XlaDynamicUpdateSlice`, which
//! `keras.ops.slice_update` emits. On a plugin's device they fail and then corrupt memory. The SDK replaces them by
//! kernels that run the op on the CPU, and prefers an author's kernel to both. It also implements `CTCLossV2` there, by
//! `CTCLoss` on the CPU.
//!
//! # Variables
//! [`OpKernelContext::variables`] returns variables to change in place. TensorFlow 2.19 to 2.21 do not export the
//! functions for it; there the SDK skips kernels that are registered with `variables`.
//!
//! # Variants
//! A TensorList, which `tf.TensorArray` and gradients of `tf.while_loop` use, is a variant. TensorFlow has kernels for lists of
//! numbers on all devices, except for `AddN` and `ZerosLike`: without these the lists of such a loop are on the CPU, and each
//! iteration copies tensors. [`OpKernelContext::add_variants`] and [`OpKernelContext::zeros_like_variant`] are for
//! such kernels, which the SDK skips in TensorFlow 2.19 to 2.21, like kernels with variables. They are registered with
//! `types(T = [DType::Variant]), variants`, and without `host_memory`.

pub(crate) mod functions;
pub(crate) mod host_features;
mod interface;
mod library;
pub(crate) mod register;
#[cfg(test)]
pub(crate) mod test_platform;
pub(crate) mod variable_ops;
pub(crate) mod workarounds;
pub(crate) mod xla;

pub use crate::abi::kernel::context::OpKernelContext;
pub use crate::abi::kernel::tensor::DeviceTensor;
pub use crate::abi::kernel::variables::{Variables, host_has_variables};
pub use crate::abi::kernel::variants::host_has_variants;
pub use host_features::has_kernel;
pub use interface::Kernel;
#[doc(hidden)]
pub use library::KernelGroup;
pub use library::{AnyPlatform, KernelList, LibraryKernel};
pub use tf_op_plugin::DType;
pub use tf_op_plugin::kernel::{
    Attribute, Element, HostTensor, HostTensorMut, OpDefinition, OpDefinitionBuilder,
    OpKernelConstruction, PartialShape, ShapeHandle, ShapeInferenceContext, host_has_op,
};

use crate::abi::kernel::target::DeviceKernel;
use tf_op_plugin::__private::{Options, Registration};

/// Creates the registration of a kernel for an op; `#[kernel]` is at `place`.
#[doc(hidden)]
#[must_use]
pub const fn registration<K: Kernel>(
    op: &'static str,
    place: &'static str,
    options: Options,
) -> Registration {
    Registration::new::<DeviceKernel<K>>(op, place, options)
}
