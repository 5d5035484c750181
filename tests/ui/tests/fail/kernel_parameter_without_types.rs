//! The attribute of the op is named T, and so should the parameter.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;
use std::marker::PhantomData;

struct K<U>(PhantomData<U>);

#[kernel(op = "Relu", types(T = [f32]))]
impl<U: Element> Kernel for K<U> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
