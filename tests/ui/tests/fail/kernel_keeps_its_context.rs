//! A run ends with the call.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;

struct K;

#[kernel(op = "Relu")]
impl Kernel for K {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        std::thread::spawn(move || context.output(0, &[]).map(drop));
        Ok(())
    }
}

fn main() {}
