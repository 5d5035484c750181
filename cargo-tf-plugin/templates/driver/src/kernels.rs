//! Kernels: one for each op and its types. An op without a kernel here runs on the CPU.

use crate::device::TemplatePluginPlatform;
use crate::programs::Binary;
use se_plugin::prelude::*;
use se_plugin::toolkit::{Broadcast, Number, ops, shape};
use std::marker::PhantomData;

/// `a + b`, for all shapes that broadcast.
struct Add<T>(PhantomData<T>);

#[kernel(op = "AddV2", types(T = [f32, i64]))]
impl<T: Number> Kernel for Add<T> {
    type Platform = TemplatePluginPlatform;

    fn new(_node: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut OpKernelContext<'_, Self::Platform>) -> Result<()> {
        binary::<T>(context, Binary::Add)
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
        binary::<T>(context, Binary::Subtract)
    }
}

/// Checks the shapes, makes the output, and enqueues the program.
fn binary<T: Number>(
    context: &mut OpKernelContext<'_, TemplatePluginPlatform>,
    program: Binary,
) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let broadcast = Broadcast::new([&shape::of(&a)?, &shape::of(&b)?])?;
    let output = ops::output(context, 0, broadcast.shape())?;
    program.launch::<T>(&context.stream().0, &broadcast, [&output, &a, &b])
}
