//! Kernels of a library. None of these mistakes hides another.

use se_plugin::prelude::*;
use std::marker::PhantomData;

// The types of `T` are not named.
struct Untyped<P, T>(PhantomData<fn() -> (P, T)>);

#[kernel(op = "Relu")]
impl<P: Platform, T: Element> Kernel for Untyped<P, T> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// A second attribute has a mistake of its own.
struct Twice<P>(PhantomData<fn() -> P>);

#[kernel(op = "Relu")]
#[kernel(types(T = [f32]))]
impl<P: Platform> Kernel for Twice<P> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// The platform is a parameter, and `type Platform` names another type.
struct Another<P>(PhantomData<fn() -> P>);

#[kernel(op = "Relu")]
impl<P: Platform> Kernel for Another<P> {
    type Platform = tf_plugin_ui_tests::device::P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, tf_plugin_ui_tests::device::P>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
