//! Reductions.

use super::*;
use crate::math::reduce;
use core::marker::PhantomData;
use num_traits::Bounded;

/// Reductions: `$body` gets the run, the name of the op and whether axes are kept.
macro_rules! reductions {
    ($($op:literal $name:ident [$($bound:tt)+] $types:tt = $body:expr;)*) => {$(
        struct $name<T> {
            keep: bool,
            elements: PhantomData<T>,
        }

        #[kernel(
            op = $op,
            types(T = $types, Tidx = [i32, i64]),
            host_memory("reduction_indices")
        )]
        impl<T: $($bound)+> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self { keep: construction.attr("keep_dims")?, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str, bool) -> Result<()> = $body;
                body(context, $op, self.keep)
            }
        }
    )*};
}

reductions! {
    "Sum" Sum [Floating] [f32, f64, f16, bf16] = |run, op, keep| {
        ops::reduce::<T, f64, T, _>(run, op, keep, 0.0, |sum, x| sum + x.to_f64(), |sum, _| T::from_f64(sum))
    };
    "Mean" Mean [Floating] [f32, f64, f16, bf16] = |run, op, keep| {
        let mean = |sum: f64, count: usize| T::from_f64(sum / count as f64);
        ops::reduce::<T, f64, T, _>(run, op, keep, 0.0, |sum, x| sum + x.to_f64(), mean)
    };
    "Prod" Prod [Floating] [f32, f64, f16, bf16] = |run, op, keep| {
        ops::reduce::<T, f64, T, _>(run, op, keep, 1.0, |sum, x| sum * x.to_f64(), |sum, _| T::from_f64(sum))
    };
    "Max" Max [Numeric] [f32, f64, f16, bf16, i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::LOWEST, T::max_or_nan, |best, _| best);
    "Min" Min [Numeric] [f32, f64, f16, bf16, i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::HIGHEST, T::min_or_nan, |best, _| best);
    "Sum" SumIntegers [Numeric] [i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::ZERO, T::plus, |sum, _| sum);
    "Prod" ProdIntegers [Numeric] [i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::ONE, T::times, |sum, _| sum);
}

macro_rules! logical {
    ($($op:literal $name:ident = $start:expr, $step:expr;)*) => {$(
        struct $name {
            keep: bool,
        }

        #[kernel(op = $op, types(Tidx = [i32, i64]), host_memory("reduction_indices"))]
        impl Kernel for $name {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self { keep: construction.attr("keep_dims")? })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let step: fn(bool, u8) -> bool = $step;
                ops::reduce(context, $op, self.keep, $start, step, |all, _| u8::from(all))
            }
        }
    )*};
}

logical! {
    "All" All = true, |all, x| all && x != 0;
    "Any" Any = false, |any, x| any || x != 0;
}

/// Computes the position of the best element along an axis, among those that are better than `start`.
fn position<T: Numeric>(
    context: &Run<'_>,
    op: &'static str,
    start: T,
    is_better: fn(T, T) -> bool,
) -> Result<()> {
    let input = context.input(0)?;
    let in_shape = shape(&input)?;
    let axis = shapes::axis(host_integer(context, 1)?, in_shape.len())?;
    if in_shape[axis] == 0 {
        return Err(wrong(format!("Reduction axis {axis} is empty in shape {in_shape:?}")));
    }
    let kept = shapes::reduced_shape(&in_shape, &[axis], false);
    let out = output(context, 0, &kept)?;
    let is_small = context.output_dtype(0)? == DType::Int32;
    launch(context, op, [&input], [&out], move |[input], [out]| {
        let input = view::<T>(input, &in_shape)?;
        if is_small {
            let out = view_mut::<i32>(out, &kept)?;
            reduce::position(input, axis, out, start, is_better, |at| at as i32);
        } else {
            let out = view_mut::<i64>(out, &kept)?;
            reduce::position(input, axis, out, start, is_better, |at| at as i64);
        }
        Ok(())
    })
}

macro_rules! positions {
    ($($op:literal $name:ident = $start:expr, $is_better:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[kernel(
            op = $op,
            types(T = [f32, f64, f16, bf16, i64], Tidx = [i32, i64], output_type = [i32, i64]),
            host_memory("dimension")
        )]
        impl<T: Numeric + Bounded> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                position::<T>(context, $op, $start, $is_better)
            }
        }
    )*};
}

// Eigen starts with the lowest finite number, or the highest, at position 0.
positions! {
    "ArgMax" ArgMax = T::min_value(), |one, best| one > best;
    "ArgMin" ArgMin = T::max_value(), |one, best| one < best;
}

macro_rules! scans {
    ($($op:literal $name:ident = $start:expr, $step:expr;)*) => {$(
        struct $name<T> {
            exclusive: bool,
            reverse: bool,
            elements: PhantomData<T>,
        }

        #[kernel(op = $op, types(T = [f32, f64, i64], Tidx = [i32, i64]), host_memory("axis"))]
        impl<T: Numeric> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self {
                    exclusive: construction.attr("exclusive")?,
                    reverse: construction.attr("reverse")?,
                    elements: PhantomData,
                })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let input = context.input(0)?;
                let shape = shape(&input)?;
                let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
                let out = output(context, 0, &shape)?;
                let way = (self.exclusive, self.reverse);
                launch(context, $op, [&input], [&out], move |[input], [out]| {
                    let (input, out) = (view::<T>(input, &shape)?, view_mut::<T>(out, &shape)?);
                    reduce::scan(input, axis, out, way, $start, $step);
                    Ok(())
                })
            }
        }
    )*};
}

scans! {
    "Cumsum" Cumsum = T::ZERO, T::plus;
    "Cumprod" Cumprod = T::ONE, T::times;
}

struct L2Loss<T>(PhantomData<T>);

#[kernel(op = "L2Loss", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for L2Loss<T> {
    type Platform = RefPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let out = output(context, 0, &[])?;
        launch(context, "L2Loss", [&input], [&out], move |[input], [out]| {
            let squares = view::<T>(input, &shape)?.fold(0.0, |sum, x| sum + x.to_f64().powi(2));
            view_mut::<T>(out, &[])?.fill(T::from_f64(squares / 2.0));
            Ok(())
        })
    }
}
