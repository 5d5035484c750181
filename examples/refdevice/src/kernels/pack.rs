//! Tensors along a new axis, packed and unpacked.

use super::*;
use core::marker::PhantomData;
use ndarray::Axis;

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
            let mut out = view_mut::<T::Bits>(outs[0], &out_shape)?;
            for (mut out, part) in out.axis_iter_mut(Axis(axis)).zip(parts) {
                out.assign(&view(part, &shape)?);
            }
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
            let input = view::<T::Bits>(inputs[0], &shape)?;
            for (out, part) in outs.into_iter().zip(input.axis_iter(Axis(axis))) {
                view_mut(out, &out_shape)?.assign(&part);
            }
            Ok(())
        })
    }
}
