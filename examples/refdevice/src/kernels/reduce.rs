//! Reductions.

use super::*;
use core::marker::PhantomData;
use ndarray::{Axis, Zip};
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
    "Max" Max [Numeric] [f32, f64, f16, bf16, i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::LOWEST, T::max_or_nan, |best, _| best);
    "Sum" SumIntegers [Numeric] [i64] =
        |run, op, keep| ops::reduce::<T, T, T, _>(run, op, keep, T::ZERO, T::plus, |sum, _| sum);
}

struct All {
    keep: bool,
}

#[kernel(op = "All", types(Tidx = [i32, i64]), host_memory("reduction_indices"))]
impl Kernel for All {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { keep: construction.attr("keep_dims")? })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let step = |all, x: u8| all && x != 0;
        ops::reduce(context, "All", self.keep, true, step, |all, _| u8::from(all))
    }
}

struct ArgMax<T>(PhantomData<T>);

#[kernel(
    op = "ArgMax",
    types(T = [f32, f64, f16, bf16, i64], Tidx = [i32, i64], output_type = [i32, i64]),
    host_memory("dimension")
)]
impl<T: Numeric + Bounded> Kernel for ArgMax<T> {
    type Platform = RefPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let in_shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 1)?, in_shape.len())?;
        ensure!(
            in_shape[axis] > 0,
            wrong(format!("Reduction axis {axis} is empty in shape {in_shape:?}"))
        );
        let out_shape = shapes::reduced_shape(&in_shape, &[axis], false);
        let out = output(context, 0, &out_shape)?;
        let is_small = context.output_dtype(0)? == DType::Int32;
        launch(context, "ArgMax", [&input], [&out], move |[input], [out]| {
            let input = view::<T>(input, &in_shape)?;
            if is_small {
                position(input, axis, view_mut(out, &out_shape)?, |at| at as i32);
            } else {
                position(input, axis, view_mut(out, &out_shape)?, |at| at as i64);
            }
            Ok(())
        })
    }
}

/// Finds the position of the greatest element along an axis; of several equal ones, the first.
fn position<T: Numeric + Bounded, I>(
    input: View<'_, T>,
    axis: usize,
    out: ViewMut<'_, I>,
    index: impl Fn(usize) -> I,
) {
    Zip::from(out).and(input.lanes(Axis(axis))).for_each(|out, lane| {
        // Eigen starts with the lowest finite number at position 0.
        let mut greatest = (0, T::min_value());
        for (at, &element) in lane.iter().enumerate() {
            if element > greatest.1 {
                greatest = (at, element);
            }
        }
        *out = index(greatest.0);
    });
}
