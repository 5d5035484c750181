//! Variants, such as lists of tensors: TensorFlow takes them apart, and a kernel gets the tensors in them.

use super::*;

macro_rules! variants {
    ($($op:literal $name:ident = $body:expr;)*) => {$(
        struct $name;

        #[kernel(op = $op, types(T = [DType::Variant]), variants)]
        impl Kernel for $name {
            type Platform = GpuPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self)
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    )*};
}

variants! {
    "AddN" AddVariants = |run, op| {
        run.add_variants(|a, b, sum| elementwise::add(run, op, [a, b], sum))
    };
    "ZerosLike" ZerosLikeVariant = |run, _| {
        run.zeros_like_variant(|_, zeros| match zeros.ptr() {
            Some(at) => run.stream().fill(at, Pattern::Zero, zeros.bytes()),
            None => Ok(()),
        })
    };
}
