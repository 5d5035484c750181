//! Slices, also with steps, and their gradient.

use super::*;
use core::marker::PhantomData;
use ndarray::Slice as AxisSlice;
use se_plugin::toolkit::slice::{self, Masks, Steps};

/// Converts steps to a slice of ndarray.
fn along_axis(steps: Steps) -> AxisSlice {
    let Steps { start, count, step } = steps;
    if count == 0 {
        return AxisSlice::from(0..0);
    }
    let length = (count - 1) * step.unsigned_abs();
    // A negative step starts from the end.
    let (first, last) = if step > 0 { (start, start + length) } else { (start - length, start) };
    AxisSlice::new(first as isize, Some(last as isize + 1), step)
}

/// Copies the elements at some indices of each axis.
fn slice<T: Copy>(input: View<'_, T>, mut out: ViewMut<'_, T>, steps: &[Steps]) {
    out.assign(&input.slice_each_axis(|axis| along_axis(steps[axis.axis.index()])));
}

/// Puts elements at some indices of each axis and leaves the others.
fn place<T: Copy>(input: View<'_, T>, mut out: ViewMut<'_, T>, steps: &[Steps]) {
    out.slice_each_axis_mut(|axis| along_axis(steps[axis.axis.index()])).assign(&input);
}

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "Slice" Slice index(Index) host("begin", "size") = |context, op| {
        let shape = input_shape(context, 0)?;
        let steps = Steps::of_slice(&shape, &context.host_integers(1)?, &context.host_integers(2)?)?;
        let out_shape = steps.iter().map(|steps| steps.count).collect();
        rearrange::<T::Bits>(context, op, 0, out_shape, move |input, out| slice(input, out, &steps))
    };
}

struct StridedSliceKernel<T> {
    masks: Masks,
    elements: PhantomData<T>,
}

#[kernel(
    op = "StridedSlice",
    types(
        T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
        Index = [i32, i64]
    ),
    host_memory("begin", "end", "strides")
)]
impl<T: Stored> Kernel for StridedSliceKernel<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { masks: Masks::read(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let plan = slice::read(context, self.masks)?.plan(&shape)?;
        let out = output(context, 0, &plan.shape)?;
        let sizes = plan.sizes();
        launch(context, "StridedSlice", [&input], [&out], move |[input], [out]| {
            let input = view::<T::Bits>(input, &shape)?;
            slice(input, view_mut(out, &sizes)?, &plan.steps);
            Ok(())
        })
    }
}

struct StridedSliceGrad<T> {
    masks: Masks,
    elements: PhantomData<T>,
}

#[kernel(
    op = "StridedSliceGrad",
    types(T = [f32, f64, f16, bf16, i64], Index = [i32, i64]),
    host_memory("shape", "begin", "end", "strides")
)]
impl<T: Stored> Kernel for StridedSliceGrad<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { masks: Masks::read(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let out_shape = host_shape(context, 0)?;
        let gradient = context.input(4)?;
        let plan = slice::read(context, self.masks)?.plan(&out_shape)?;
        let gradient_shape = shape(&gradient)?;
        ensure!(
            gradient_shape == plan.shape,
            wrong(format!("dy has the shape {gradient_shape:?} and not {:?}", plan.shape))
        );
        let out = output(context, 0, &out_shape)?;
        launch(context, "StridedSliceGrad", [&gradient], [&out], move |[gradient], [out]| {
            out.fill(0);
            let gradient = view::<T::Bits>(gradient, &plan.sizes())?;
            place(gradient, view_mut(out, &out_shape)?, &plan.steps);
            Ok(())
        })
    }
}
