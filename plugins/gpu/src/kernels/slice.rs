//! Parts of tensors: strided slices, splits, and tensors along a new axis.

use super::transpose::{Walk, broadcast, copy_of_input, fill, slice, strides};
use super::*;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::{Masks, Steps, StridedSlice};

/// Reads the masks of a strided slice.
fn masks(construction: &OpKernelConstruction<'_>) -> Result<Masks> {
    Ok(Masks {
        begin: construction.attr("begin_mask")?,
        end: construction.attr("end_mask")?,
        ellipsis: construction.attr("ellipsis_mask")?,
        new_axis: construction.attr("new_axis_mask")?,
        shrink: construction.attr("shrink_axis_mask")?,
    })
}

/// Reads the slice from three host inputs.
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
impl<T: Element> Kernel for StridedSliceKernel<T> {
    type Platform = GpuPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { masks: masks(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let plan = strided(context, self.masks)?.plan(&shape)?;
        let out = output(context, 0, &plan.shape)?;
        slice(&shape, &plan.steps).enqueue(context, "StridedSlice", (&input).into(), &out)
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
impl<T: Element> Kernel for StridedSliceGrad<T> {
    type Platform = GpuPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { masks: masks(construction)?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let out_shape = host_shape(context, 0)?;
        let gradient = context.input(4)?;
        let plan = strided(context, self.masks)?.plan(&out_shape)?;
        let found = shape(&gradient)?;
        if found != plan.shape {
            return Err(wrong(format!("dy has the shape {found:?} and not {:?}", plan.shape)));
        }
        let out = output(context, 0, &out_shape)?;
        fill(context, "StridedSliceGrad", Operand::Value(0), &out)?;
        let walk = slice(&out_shape, &plan.steps).reversed();
        walk.enqueue(context, "StridedSliceGrad", (&gradient).into(), &out)
    }
}

/// Writes values into a slice of `target`, repeated along axes that they do not have.
fn assign(
    context: &Run<'_>,
    op: &'static str,
    masks: Masks,
    target: &DeviceTensor,
    values: &DeviceTensor,
) -> Result<()> {
    let (whole, found) = (shape(target)?, shape(values)?);
    let plan = strided(context, masks)?.plan(&whole)?;
    let walk = slice(&whole, &plan.steps).reversed();
    if found == plan.shape {
        return walk.enqueue(context, op, values.into(), target);
    }
    if !shapes::broadcasts_to(&found, &plan.shape) {
        return Err(wrong(format!("the values have the shape {found:?} and not {:?}", plan.shape)));
    }
    let repeated = context.temporary(values.dtype(), &shapes::to_host(&plan.shape))?;
    let source = broadcast(&found, plan.shape.len());
    let all = Walk::new(&plan.shape, &source, &strides(&plan.shape));
    all.enqueue(context, op, values.into(), &repeated)?;
    walk.enqueue(context, op, (&repeated).into(), target)
}

macro_rules! assignments {
    ($($op:literal $name:ident $host:tt $(, $variables:ident)? = $body:expr;)*) => {$(
        struct $name<T> {
            masks: Masks,
            elements: PhantomData<T>,
        }

        #[kernel(
            op = $op,
            types(
                T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
                Index = [i32, i64]
            ),
            host_memory $host
            $(, $variables)?
        )]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self { masks: masks(construction)?, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str, Masks) -> Result<()> = $body;
                body(context, $op, self.masks)
            }
        }
    )*};
}

assignments! {
    "TensorStridedSliceUpdate" TensorStridedSliceUpdate ("begin", "end", "strides") = |context, op, masks| {
        assign(context, op, masks, &copy_of_input(context, op)?, &context.input(4)?)
    };
    "ResourceStridedSliceAssign" ResourceStridedSliceAssign ("ref", "begin", "end", "strides"), variables =
        |context, op, masks| {
            let variables = context.variables(&[0])?;
            assign(context, op, masks, &variables[0], &context.input(4)?)
        };
}

/// Splits a tensor into parts of these sizes along an axis.
fn split(
    context: &Run<'_>,
    op: &'static str,
    input: &DeviceTensor,
    axis: usize,
    sizes: &[usize],
) -> Result<()> {
    let shape = shape(input)?;
    let mut start = 0;
    for (at, &size) in sizes.iter().enumerate() {
        let mut steps: Vec<_> = shape.iter().map(|&size| Steps::range(0, size)).collect();
        steps[axis] = Steps::range(start, size);
        start += size;
        let part: Shape = steps.iter().map(|steps| steps.count).collect();
        let out = output(context, at, &part)?;
        slice(&shape, &steps).enqueue(context, op, input.into(), &out)?;
    }
    Ok(())
}

struct Split<T>(PhantomData<T>);

#[kernel(
    op = "Split",
    types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]),
    host_memory("split_dim")
)]
impl<T: Element> Kernel for Split<T> {
    type Platform = GpuPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(1)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 0)?, shape.len())?;
        let count = context.output_count();
        if count == 0 || !shape[axis].is_multiple_of(count) {
            return Err(wrong(format!(
                "Number of ways to split should evenly divide the split dimension: {count}, {shape:?}"
            )));
        }
        split(context, "Split", &input, axis, &vec![shape[axis] / count; count])
    }
}

struct SplitV<T>(PhantomData<T>);

#[kernel(
    op = "SplitV",
    types(
        T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
        Tlen = [i32, i64]
    ),
    host_memory("size_splits", "split_dim")
)]
impl<T: Element> Kernel for SplitV<T> {
    type Platform = GpuPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 2)?, shape.len())?;
        let mut sizes = context.host_integers(1)?;
        let known: i64 = sizes.iter().filter(|&&size| size != -1).sum();
        // At most one size is the rest.
        if let Some(rest) = sizes.iter_mut().find(|size| **size == -1) {
            *rest = shape[axis] as i64 - known;
        }
        let parts =
            from_host(&sizes).ok().filter(|parts| parts.iter().sum::<usize>() == shape[axis]);
        let parts = parts
            .ok_or_else(|| wrong(format!("sizes {sizes:?} do not add up to {}", shape[axis])))?;
        split(context, "SplitV", &input, axis, &parts)
    }
}

/// Returns a walk that puts `part` at one of the places along an axis of a tensor of the shape `whole`.
fn at(whole: &[usize], axis: usize, place: usize, part: &[usize]) -> Walk {
    let mut steps = strides(whole);
    let step = steps.remove(axis);
    let mut walk = Walk::new(part, &strides(part), &steps);
    walk.from[1] = place * step as usize;
    walk
}

struct Pack<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(op = "Pack", types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]))]
impl<T: Element> Kernel for Pack<T> {
    type Platform = GpuPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let parts = inputs(context, "values")?;
        let first = parts.first().ok_or_else(|| wrong("there is nothing to pack"))?;
        if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return Err(wrong(format!("Shapes of all inputs must match: {one:?} vs. {other:?}")));
        }
        let shape = shape(first)?;
        let axis = shapes::axis(self.axis, shape.len() + 1)?;
        let mut out_shape = shape.clone();
        out_shape.insert(axis, parts.len());
        let out = output(context, 0, &out_shape)?;
        for (place, part) in parts.iter().enumerate() {
            at(&out_shape, axis, place, &shape).enqueue(context, "Pack", part.into(), &out)?;
        }
        Ok(())
    }
}

struct Unpack<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(op = "Unpack", types(T = [f32, f64, f16, bf16, i8, i16, u8, u16, u32, u64, bool]))]
impl<T: Element> Kernel for Unpack<T> {
    type Platform = GpuPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(self.axis, shape.len())?;
        let count = context.output_count();
        if shape[axis] != count {
            return Err(wrong(format!(
                "Input shape axis {axis} must equal {count}, got shape {shape:?}"
            )));
        }
        let mut part = shape.clone();
        part.remove(axis);
        for place in 0..count {
            let walk = at(&shape, axis, place, &part).reversed();
            walk.enqueue(context, "Unpack", (&input).into(), &output(context, place, &part)?)?;
        }
        Ok(())
    }
}
