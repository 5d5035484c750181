//! Groups of kernels for platforms that do not fit.

use se_plugin::host::HostDevice;
use se_plugin::kernel::KernelList;
use se_plugin::prelude::*;
use std::marker::PhantomData;
use tf_plugin_ui_tests::device::P as Mine;

// A kernel of a plugin is not one of a library.
struct OfAPlugin;

#[kernel(op = "Relu")]
impl Kernel for OfAPlugin {
    type Platform = Mine;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, Mine>) -> Result<()> {
        Ok(())
    }
}

fn group<P: Platform<Device = HostDevice>>(list: &mut KernelList) {
    list.add::<OfAPlugin>();
}

se_plugin::register_kernels!(Mine: group);

// The kernels need more than the platform is.
trait Special: Platform {}

struct OfSpecial<P>(PhantomData<fn() -> P>);

#[kernel(op = "Relu")]
impl<P: Special> Kernel for OfSpecial<P> {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

fn special<P: Special>(list: &mut KernelList) {
    list.add::<OfSpecial<P>>();
}

se_plugin::register_kernels!(Mine: special);

fn main() {}
