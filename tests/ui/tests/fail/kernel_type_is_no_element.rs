//! Elements have a size.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;

struct K;

#[kernel(op = "Relu", types(T = [String]))]
impl Kernel for K {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
