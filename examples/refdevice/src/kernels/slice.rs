//! Slices with steps, and their gradient.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::{Masks, StridedSlice};

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
            arrange::slice(input, view_mut(out, &sizes)?, &plan.steps);
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
        let found = shape(&gradient)?;
        ensure!(
            found == plan.shape,
            wrong(format!("dy has the shape {found:?} and not {:?}", plan.shape))
        );
        let out = output(context, 0, &out_shape)?;
        launch(context, "StridedSliceGrad", [&gradient], [&out], move |[gradient], [out]| {
            out.fill(0);
            let gradient = view::<T::Bits>(gradient, &plan.sizes())?;
            arrange::place(gradient, view_mut(out, &out_shape)?, &plan.steps);
            Ok(())
        })
    }
}
