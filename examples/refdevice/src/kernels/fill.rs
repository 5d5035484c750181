//! `Fill`, `ZerosLike` and `OnesLike`: tensors of one value.

use super::*;

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "Fill" Fill index(index_type) host("dims") = |context, op| {
        let out_shape = host_shape(context, 0)?;
        ensure!(context.input(1)?.len() == 1, wrong("value must be a scalar"));
        rearrange::<T::Bits>(context, op, 1, out_shape, |value, mut out| {
            if let Some(&value) = value.first() {
                out.fill(value);
            }
        })
    };
    "ZerosLike" ZerosLike = |context, op| constant(context, op, T::default());

    Numeric [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "OnesLike" OnesLike = |context, op| constant(context, op, T::ONE);
}

/// Fills an output of the input's shape with `value`.
fn constant<T: Stored>(context: &Run<'_>, op: &'static str, value: T) -> Result<()> {
    let out = context.output(0, context.input(0)?.shape())?;
    let bits = value.bits();
    launch(context, op, [], [&out], move |[], [out]| {
        elements_mut(out)?.fill(bits);
        Ok(())
    })
}
