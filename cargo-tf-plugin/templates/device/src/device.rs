//! A device on the host, as a starting point. Its memory is host memory at addresses that the host cannot dereference,
//! and its streams are threads that work asynchronously, like those of a real device.
//!
//! For a real device, implement `Device`, `Stream` and `Event` on its driver and use them instead of `HostDevice`.

use se_plugin::host::{HostDevice, HostMemory};
use se_plugin::prelude::*;
use se_plugin::toolkit::{Number, ops};
use std::marker::PhantomData;

/// The memory of the device in bytes.
const MEMORY: u64 = 1 << 30;

/// The platform, which counts and opens the devices.
pub struct TemplatePluginPlatform;

#[device_plugin]
impl Platform for TemplatePluginPlatform {
    const NAME: &'static str = "TEMPLATE_PLUGIN";
    const TYPE: &'static str = "TEMPLATE_PLUGIN";
    type Device = HostDevice;

    fn new() -> Result<Self> {
        Ok(Self)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn open(&self, _ordinal: usize) -> Result<HostDevice> {
        Ok(HostDevice::new(HostMemory::new(MEMORY)?))
    }
}

/// `a + b`, for all shapes that broadcast. An op without a kernel here runs on the CPU.
struct Add<T>(PhantomData<T>);

#[kernel(op = "AddV2", types(T = [f32, i64]))]
impl<T: Number> Kernel for Add<T> {
    type Platform = TemplatePluginPlatform;

    fn new(_node: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut OpKernelContext<'_, Self::Platform>) -> Result<()> {
        // Checks the shapes, makes the output and enqueues the work on the stream.
        ops::binary(context, "AddV2", add::<T>)
    }
}

/// `a - b`. A variable needs `AddV2` and `Sub` of its type: an `assign_sub` in a `tf.function` becomes a `Sub`.
struct Sub<T>(PhantomData<T>);

#[kernel(op = "Sub", types(T = [f32, i64]))]
impl<T: Number> Kernel for Sub<T> {
    type Platform = TemplatePluginPlatform;

    fn new(_node: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut OpKernelContext<'_, Self::Platform>) -> Result<()> {
        ops::binary(context, "Sub", T::minus)
    }
}

/// Returns the sum of two elements, as `AddV2` computes it.
pub fn add<T: Number>(a: T, b: T) -> T {
    a.plus(b)
}
