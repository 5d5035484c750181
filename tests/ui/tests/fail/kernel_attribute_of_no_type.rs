//! An attribute is not read as any type.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;

struct K(u64);

#[kernel(op = "Relu")]
impl Kernel for K {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(construction.attr("axis")?))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
