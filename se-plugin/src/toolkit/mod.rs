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

pub mod ops;

pub use tf_op_plugin::toolkit::{
    Broadcast, Number, Real, Shape, Strides, einsum, loops, number, window,
};

/// Shape inference: the shapes of results, and the axes that arguments name.
pub mod shape {
    use crate::kernel::DeviceTensor;
    use tf_plugin_core::Result;

    pub use tf_op_plugin::toolkit::shape::*;

    /// Returns the shape of a tensor.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a negative size, which TensorFlow never has.
    pub fn of(tensor: &DeviceTensor) -> Result<Shape> {
        from_host(tensor.shape())
    }
}

/// Slices as Python writes them: `a[1:, ::-2, ..., None, 3]`.
pub mod slice {
    use crate::kernel::OpKernelContext;
    use crate::platform::Platform;
    use tf_plugin_core::Result;

    pub use tf_op_plugin::toolkit::slice::*;

    /// Reads the slice of an op from its host inputs 1, 2 and 3.
    ///
    /// # Errors
    /// As [`OpKernelContext::host_integers`].
    pub fn read<P: Platform>(
        context: &OpKernelContext<'_, P>,
        masks: Masks,
    ) -> Result<StridedSlice> {
        let [begin, end, strides] = [1, 2, 3].map(|index| context.host_integers(index));
        Ok(StridedSlice { begin: begin?, end: end?, strides: strides?, masks })
    }
}
