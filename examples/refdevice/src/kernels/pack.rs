//! Tensors along a new axis, packed and unpacked.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;

struct Pack<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(op = "Pack", types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]))]
impl<T: Stored> Kernel for Pack<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let parts = inputs(context, "values")?;
        let first = parts.first().ok_or_else(|| wrong("there is nothing to pack"))?;
        for part in &parts {
            let (one, other) = (first.shape(), part.shape());
            ensure!(
                one == other,
                wrong(format!("Shapes of all inputs must match: {one:?} vs. {other:?}"))
            );
        }
        let shape = shape(first)?;
        let axis = shapes::axis(self.axis, shape.len() + 1)?;
        let mut out_shape = shape.clone();
        out_shape.insert(axis, parts.len());
        let out = output(context, 0, &out_shape)?;
        launch_lists(context, "Pack", &parts, &[out], move |parts, mut outs| {
            let parts = parts.into_iter().map(|part| view(part, &shape));
            let parts = parts.collect::<Result<Vec<View<'_, T::Bits>>>>()?;
            arrange::pack(&parts, view_mut(outs[0], &out_shape)?, axis);
            Ok(())
        })
    }
}

struct Unpack<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(op = "Unpack", types(T = [f32, f64, f16, bf16, i8, i16, u8, u16, u32, u64, bool]))]
impl<T: Stored> Kernel for Unpack<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(self.axis, shape.len())?;
        ensure!(
            shape[axis] == context.output_count(),
            wrong(format!(
                "Input shape axis {axis} must equal {}, got shape {shape:?}",
                context.output_count()
            ))
        );
        let mut out_shape = shape.clone();
        out_shape.remove(axis);
        let outs = (0..shape[axis]).map(|at| output(context, at, &out_shape));
        let outs = outs.collect::<Result<Vec<_>>>()?;
        launch_lists(context, "Unpack", &[input], &outs, move |inputs, outs| {
            let outs = outs.into_iter().map(|out| view_mut(out, &out_shape));
            let outs = outs.collect::<Result<Vec<ViewMut<'_, T::Bits>>>>()?;
            arrange::unpack(view(inputs[0], &shape)?, outs, axis);
            Ok(())
        })
    }
}
