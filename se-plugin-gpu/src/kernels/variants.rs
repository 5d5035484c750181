//! Variants, such as lists of tensors: TensorFlow unpacks them, and a kernel gets their tensors.

use super::*;

kernels! {
    types ()
    "AddN" AddVariants (types(T = [DType::Variant]), variants) = |run, op| {
        run.add_variants(|a, b, sum| elementwise::add(run, op, [a, b], sum))
    };
    "ZerosLike" ZerosLikeVariant (types(T = [DType::Variant]), variants) = |run, _| {
        run.zeros_like_variant(|_, zeros| match zeros.ptr() {
            Some(at) => run.stream().fill(at, Pattern::Zero, zeros.bytes()),
            None => Ok(()),
        })
    };
}
