//! Variants, such as lists of tensors. TensorFlow unpacks them; the kernels get the tensors in them.

use super::*;

untyped! {
    "AddN" AddVariants (types(T = [DType::Variant]), variants) = |run, op| run.add_variants(|a, b, sum| add(run, op, [a, b], sum));
    "ZerosLike" ZerosLikeVariant (types(T = [DType::Variant]), variants) = |run, op| {
        run.zeros_like_variant(|_, zeros| {
            launch(run, op, [], [zeros], |[], [zeros]| {
                zeros.fill(0);
                Ok(())
            })
        })
    };
}

/// Adds two tensors of a type that TensorFlow supports in lists on all devices.
fn add(
    context: &Run<'_>,
    op: &'static str,
    [a, b]: [&DeviceTensor; 2],
    sum: &DeviceTensor,
) -> Result<()> {
    let plus = match a.dtype() {
        // A complex number is two floats.
        DType::Float32 | DType::Complex64 => plus::<f32>,
        DType::Float64 | DType::Complex128 => plus::<f64>,
        DType::Float16 => plus::<f16>,
        DType::Bfloat16 => plus::<bf16>,
        DType::Int32 => plus::<i32>,
        DType::Int64 => plus::<i64>,
        other => return Err(wrong(format!("Trying to add unsupported dtype {other}"))),
    };
    launch(context, op, [a, b], [sum], plus)
}

fn plus<T: Numeric>([a, b]: [&[u8]; 2], [sum]: [&mut [u8]; 1]) -> Result<()> {
    sum.copy_from_slice(a);
    loops::update(elements_mut::<T>(sum)?, elements::<T>(b)?, T::plus);
    Ok(())
}
