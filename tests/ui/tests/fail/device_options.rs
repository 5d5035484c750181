//! Options of `#[device_plugin]` and `#[kernel]`. None of these mistakes hides another.

use se_plugin::prelude::*;
use std::marker::PhantomData;
use tf_plugin_ui_tests::device::P;
use tf_plugin_ui_tests::no_devices;

// The attribute of the op is named T, and so should the parameter.
struct Typed<U>(PhantomData<U>);

#[kernel(op = "Relu", types(T = [f32]))]
impl<U: Element> Kernel for Typed<U> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// Which op?
struct WithoutAnOp;

#[kernel(types(T = [f32]))]
impl Kernel for WithoutAnOp {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// Name and type are constants of the trait.
#[device_plugin(name = "MINE")]
struct Named;

// The other options take expressions, and `autoload` is for filesystems.
#[device_plugin(autoload = false, graph_pass, profiler =, graph_pass = Pass)]
struct Optional;

// TensorFlow needs one concrete type.
struct Generic<const N: usize>;

#[device_plugin]
impl<const N: usize> Platform for Generic<N> {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "MINE";
    no_devices!();
}

fn main() {}
