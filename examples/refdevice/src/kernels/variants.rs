//! Variants, such as lists of tensors: TensorFlow takes them apart, and a kernel gets the tensors in them.

use super::*;

macro_rules! variants {
    ($($op:literal $name:ident = $body:expr;)*) => {$(
        struct $name;

        #[kernel(op = $op, types(T = [DType::Variant]), variants)]
        impl Kernel for $name {
            type Platform = RefPlatform;

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
    "AddN" AddVariants = |run, op| run.add_variants(|a, b, sum| add(run, op, [a, b], sum));
    "ZerosLike" ZerosLikeVariant = |run, op| {
        run.zeros_like_variant(|_, zeros| {
            launch(run, op, [], [zeros], |[], [zeros]| {
                zeros.fill(0);
                Ok(())
            })
        })
    };
}

/// Adds two tensors of the types of which TensorFlow has lists on all devices.
fn add(
    context: &Run<'_>,
    op: &'static str,
    [a, b]: [&DeviceTensor; 2],
    sum: &DeviceTensor,
) -> Result<()> {
    let plus = match a.dtype() {
        // A complex number is two.
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
