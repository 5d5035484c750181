//! Parts of a tensor along an axis.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::Steps;

/// Splits a tensor along an axis into parts of these sizes.
fn split<T: Stored>(
    context: &Run<'_>,
    op: &'static str,
    input: DeviceTensor,
    axis: usize,
    sizes: Vec<usize>,
) -> Result<()> {
    let shape = shape(&input)?;
    let part_shape = |size: usize| {
        let mut part = shape.clone();
        part[axis] = size;
        part
    };
    let shapes: Vec<Shape> = sizes.iter().map(|&size| part_shape(size)).collect();
    let outs = shapes.iter().enumerate().map(|(at, shape)| output(context, at, shape));
    let outs = outs.collect::<Result<Vec<_>>>()?;
    launch_lists(context, op, &[input], &outs, move |inputs, outs| {
        let input = view::<T::Bits>(inputs[0], &shape)?;
        let mut start = 0;
        for (out, part) in outs.into_iter().zip(&shapes) {
            let mut steps: Vec<_> = part.iter().map(|&size| Steps::range(0, size)).collect();
            steps[axis].start = start;
            start += part[axis];
            arrange::slice(input.view(), view_mut(out, part)?, &steps);
        }
        Ok(())
    })
}

struct Split<T>(PhantomData<T>);

#[kernel(
    op = "Split",
    types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]),
    host_memory("split_dim")
)]
impl<T: Stored> Kernel for Split<T> {
    type Platform = RefPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(1)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 0)?, shape.len())?;
        let count = context.output_count();
        ensure!(
            count > 0 && shape[axis].is_multiple_of(count),
            wrong(format!(
                "Number of ways to split should evenly divide the split dimension: {count}, {shape:?}"
            ))
        );
        split::<T>(context, "Split", input, axis, vec![shape[axis] / count; count])
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
impl<T: Stored> Kernel for SplitV<T> {
    type Platform = RefPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 2)?, shape.len())?;
        let mut sizes = context.host_integers(1)?;
        let known: i64 = sizes.iter().filter(|&&size| size != -1).sum();
        // One size may be -1, which means the rest.
        if let Some(rest) = sizes.iter_mut().find(|size| **size == -1) {
            *rest = shape[axis] as i64 - known;
        }
        let wrong = || wrong(format!("sizes {sizes:?} do not add up to {}", shape[axis]));
        let parts = from_host(&sizes).map_err(|_| wrong())?;
        ensure!(parts.iter().sum::<usize>() == shape[axis], wrong());
        split::<T>(context, "SplitV", input, axis, parts)
    }
}
