//! Slices, also with steps, and their gradient.

use super::*;
use core::marker::PhantomData;
use ndarray::Slice as AxisSlice;
use se_plugin::toolkit::slice::{Masks, Steps, StridedSlice};

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
        let (begin, size) = (context.host_integers(1)?, context.host_integers(2)?);
        ensure!(
            begin.len() == shape.len() && size.len() == shape.len(),
            wrong(format!("begin {begin:?} and size {size:?} do not fit the shape {shape:?}"))
        );
        let steps = shape.iter().zip(begin.iter().zip(&size)).map(|(&all, (&begin, &size))| {
            let start = usize::try_from(begin).ok().filter(|&start| start <= all);
            let steps = start.and_then(|start| {
                let count = match size {
                    -1 => all - start,
                    size => usize::try_from(size).ok().filter(|&size| size <= all - start)?,
                };
                Some(Steps::range(start, count))
            });
            steps.ok_or_else(|| wrong(format!("Expected begin[i] in [0, {all}] and size[i] within it, but got {begin} and {size}")))
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let out_shape = steps.iter().map(|steps| steps.count).collect();
        rearrange::<T::Bits>(context, op, 0, out_shape, move |input, out| slice(input, out, &steps))
    };
}

/// Returns the masks of a strided slice.
fn masks(construction: &OpKernelConstruction<'_>) -> Result<Masks> {
    Ok(Masks {
        begin: construction.attr("begin_mask")?,
        end: construction.attr("end_mask")?,
        ellipsis: construction.attr("ellipsis_mask")?,
        new_axis: construction.attr("new_axis_mask")?,
        shrink: construction.attr("shrink_axis_mask")?,
    })
}

/// Reads a slice from three host inputs.
fn strided(context: &Run<'_>, masks: Masks) -> Result<StridedSlice> {
    let [begin, end, strides] = [1, 2, 3].map(|index| context.host_integers(index));
    Ok(StridedSlice { begin: begin?, end: end?, strides: strides?, masks })
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
        Ok(Self { masks: masks(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let plan = strided(context, self.masks)?.plan(&shape)?;
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
        Ok(Self { masks: masks(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let out_shape = host_shape(context, 0)?;
        let gradient = context.input(4)?;
        let plan = strided(context, self.masks)?.plan(&out_shape)?;
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
