//! Elements in other places. What they are does not matter, so these kernels move bytes.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::{Masks, Steps, StridedSlice};

/// The only element of a host input.
pub(super) fn host_integer(context: &Run<'_>, index: usize) -> Result<i64> {
    match context.host_integers(index)?[..] {
        [only] => Ok(only),
        _ => Err(wrong(format!("input {index} must be a scalar"))),
    }
}

/// A host input as a shape.
fn host_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    from_host(&context.host_integers(index)?)
}

#[cold]
fn too_large() -> Error {
    wrong("the result would have a size beyond all numbers")
}

/// A kernel that moves elements of any type and has no attributes.
macro_rules! movers {
    ($($op:literal $name:ident ($index:ident) $host:tt = $body:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[kernel(
            op = $op,
            types(
                T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool],
                $index = [i32, i64]
            ),
            host_memory $host
        )]
        impl<T: Stored> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    )*};
}

/// Moves the elements of input `index` to an output of this shape.
fn rearrange<B: Pod>(
    context: &Run<'_>,
    op: &'static str,
    index: usize,
    out_shape: Shape,
    work: impl FnOnce(View<'_, B>, ViewMut<'_, B>) + Send + 'static,
) -> Result<()> {
    let input = context.input(index)?;
    let shape = shape(&input)?;
    let out = output(context, 0, &out_shape)?;
    launch(context, op, [&input], [&out], move |[input], [out]| {
        work(view(input, &shape)?, view_mut(out, &out_shape)?);
        Ok(())
    })
}

/// The shape of input `index`.
fn input_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    shape(&context.input(index)?)
}

movers! {
    "Tile" Tile (Tmultiples) ("multiples") = |context, op| {
        let (shape, multiples) = (input_shape(context, 0)?, host_shape(context, 1)?);
        ensure!(
            shape.len() == multiples.len(),
            wrong(format!("Expected multiples argument to be a vector of length {} but got length {}", shape.len(), multiples.len()))
        );
        let out = shape.iter().zip(&multiples).map(|(size, times)| size.checked_mul(*times));
        let out = out.collect::<Option<_>>().ok_or_else(too_large)?;
        rearrange::<T::Bits>(context, op, 0, out, |a, out| arrange::tile(a, out))
    };
    "BroadcastTo" BroadcastTo (Tidx) ("shape") = |context, op| {
        let (shape, out) = (input_shape(context, 0)?, host_shape(context, 1)?);
        ensure!(
            shapes::broadcasts_to(&shape, &out),
            wrong(format!("Incompatible shapes: {shape:?} vs. {out:?}"))
        );
        rearrange::<T::Bits>(context, op, 0, out, |a, out| arrange::broadcast(a, out))
    };
    "Transpose" Transpose (Tperm) ("perm") = |context, op| {
        let (shape, order) = (input_shape(context, 0)?, host_shape(context, 1)?);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        ensure!(
            sorted.iter().copied().eq(0..shape.len()),
            wrong(format!("{order:?} is not a permutation of the axes of the shape {shape:?}"))
        );
        let out = order.iter().map(|&axis| shape[axis]).collect();
        rearrange::<T::Bits>(context, op, 0, out, move |a, out| arrange::transpose(a, out, &order))
    };
    "Slice" Slice (Index) ("begin", "size") = |context, op| {
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
        let out = steps.iter().map(|steps| steps.count).collect();
        rearrange::<T::Bits>(context, op, 0, out, move |a, out| arrange::slice(a, out, &steps))
    };
    "ReverseV2" ReverseV2 (Tidx) ("axis") = |context, op| {
        let shape = input_shape(context, 0)?;
        let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
        rearrange::<T::Bits>(context, op, 0, shape, move |a, out| arrange::reverse(a, out, &axes))
    };
    "Pad" Pad (Tpaddings) ("paddings") =
        |context, op| pad::<T>(context, op, T::default());
    "PadV2" PadV2 (Tpaddings) ("paddings", "constant_values") =
        |context, op| pad::<T>(context, op, context.host_scalar::<T>(2)?);
    "ConcatV2" ConcatV2 (Tidx) ("axis") = |context, op| {
        let parts = inputs(context, "values")?;
        let axis = host_integer(context, parts.len())?;
        let sizes = parts.iter().map(shape).collect::<Result<Vec<_>>>()?;
        let first = sizes.first().ok_or_else(|| wrong("there is nothing to concatenate"))?;
        let axis = shapes::axis(axis, first.len())?;
        let mut out_shape = first.clone();
        for size in &sizes[1..] {
            let mut own = size.clone();
            if own.len() == first.len() {
                out_shape[axis] += own[axis];
                own[axis] = first[axis];
            }
            ensure!(own == *first, wrong(format!("ConcatOp : Dimension {axis} in both shapes must be equal: {first:?} vs. {size:?}")));
        }
        let out = output(context, 0, &out_shape)?;
        launch_lists(context, op, &parts, &[out], move |parts, mut outs| {
            let parts = parts.into_iter().zip(&sizes).map(|(part, shape)| view(part, shape));
            let parts = parts.collect::<Result<Vec<View<'_, T::Bits>>>>()?;
            arrange::concatenate(&parts, view_mut(outs[0], &out_shape)?, axis);
            Ok(())
        })
    };
}

/// The input between others.
fn pad<T: Stored>(context: &Run<'_>, op: &'static str, value: T) -> Result<()> {
    let shape = input_shape(context, 0)?;
    let paddings = host_shape(context, 1)?;
    ensure!(
        paddings.len() == 2 * shape.len(),
        wrong(format!(
            "The first dimension of paddings must be the rank of inputs: {paddings:?}, {shape:?}"
        ))
    );
    let before: Vec<_> = paddings.chunks(2).map(|pair| pair[0]).collect();
    let out = shape.iter().zip(paddings.chunks(2));
    let out = out.map(|(size, pair)| size.checked_add(pair[0])?.checked_add(pair[1]));
    let out = out.collect::<Option<_>>().ok_or_else(too_large)?;
    let value = value.bits();
    rearrange::<T::Bits>(context, op, 0, out, move |a, out| arrange::pad(a, out, &before, value))
}

struct Fill<T>(PhantomData<T>);

#[kernel(
    op = "Fill",
    types(
        T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
        index_type = [i32, i64]
    ),
    host_memory("dims")
)]
impl<T: Stored> Kernel for Fill<T> {
    type Platform = RefPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let out = host_shape(context, 0)?;
        ensure!(context.input(1)?.len() == 1, wrong("value must be a scalar"));
        rearrange::<T::Bits>(context, "Fill", 1, out, |value, mut out| {
            if let Some(&value) = value.first() {
                out.fill(value);
            }
        })
    }
}

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

/// Parts of a tensor of these sizes along an axis.
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
        // At most one is what is left.
        if let Some(rest) = sizes.iter_mut().find(|size| **size == -1) {
            *rest = shape[axis] as i64 - known;
        }
        let wrong = || wrong(format!("sizes {sizes:?} do not add up to {}", shape[axis]));
        let parts = from_host(&sizes).map_err(|_| wrong())?;
        ensure!(parts.iter().sum::<usize>() == shape[axis], wrong());
        split::<T>(context, "SplitV", input, axis, parts)
    }
}

/// The masks of a strided slice.
fn masks(construction: &OpKernelConstruction<'_>) -> Result<Masks> {
    Ok(Masks {
        begin: construction.attr("begin_mask")?,
        end: construction.attr("end_mask")?,
        ellipsis: construction.attr("ellipsis_mask")?,
        new_axis: construction.attr("new_axis_mask")?,
        shrink: construction.attr("shrink_axis_mask")?,
    })
}

/// The slice in three host inputs.
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

/// Indices of either size, as a tensor of this shape.
pub(super) fn indices(
    bytes: &[u8],
    is_small: bool,
    shape: &[usize],
) -> Result<ndarray::ArrayD<i64>> {
    Ok(match is_small {
        true => view::<i32>(bytes, shape)?.mapv(i64::from),
        false => view::<i64>(bytes, shape)?.to_owned(),
    })
}

struct GatherV2<T> {
    batches: i64,
    elements: PhantomData<T>,
}

#[allow(non_camel_case_types, reason = "the attribute has this name")]
const _: () = {
    #[kernel(
        op = "GatherV2",
        types(
            Tparams = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
            Tindices = [i32, i64],
            Taxis = [i32, i64]
        ),
        host_memory("axis")
    )]
    impl<Tparams: Stored> Kernel for GatherV2<Tparams> {
        type Platform = RefPlatform;

        fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self { batches: construction.attr("batch_dims")?, elements: PhantomData })
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
            let (params, index) = (context.input(0)?, context.input(1)?);
            let (shape, index_shape) = (shape(&params)?, shape(&index)?);
            let axis = shapes::axis(host_integer(context, 2)?, shape.len())?;
            let batches = match self.batches {
                batches if batches < 0 => batches + index_shape.len() as i64,
                batches => batches,
            };
            let batches = usize::try_from(batches).ok().filter(|&batches| {
                batches <= axis
                    && batches <= index_shape.len()
                    && shape[..batches] == index_shape[..batches]
            });
            let batches = batches.ok_or_else(|| {
                wrong(format!(
                    "batch_dims {} does not fit params of shape {shape:?}, indices of shape {index_shape:?} and \
                     axis {axis}",
                    self.batches
                ))
            })?;
            let out_shape = [&shape[..axis], &index_shape[batches..], &shape[axis + 1..]].concat();
            let out = output(context, 0, &out_shape)?;
            let batch = shapes::count(&shape[..batches]);
            let outer = shapes::count(&shape[batches..axis]);
            let inner = shapes::count(&shape[axis + 1..]);
            let count = shapes::count(&index_shape[batches..]);
            let (size, is_small) = (shape[axis], index.dtype() == DType::Int32);
            launch(context, "GatherV2", [&params, &index], [&out], move |[params, index], [out]| {
                let params = view::<Tparams::Bits>(params, &[batch, outer, size, inner])?;
                let index = indices(index, is_small, &[batch, count])?;
                let out = view_mut(out, &[batch, outer, count, inner])?;
                arrange::gather(params, index.view(), out, Tparams::default().bits());
                Ok(())
            })
        }
    }
};

struct OneHot<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(
    op = "OneHot",
    types(T = [f32, f64, f16, bf16, i64, bool], TI = [u8, i32, i64]),
    host_memory("depth")
)]
impl<T: Stored> Kernel for OneHot<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let [index, on, off] = [0, 2, 3].map(|at| context.input(at));
        let (index, on, off) = (index?, on?, off?);
        ensure!(on.len() == 1 && off.len() == 1, wrong("on_value and off_value must be scalars"));
        let shape = shape(&index)?;
        let axis = shapes::axis(self.axis, shape.len() + 1)?;
        let [depth] = from_host(&[host_integer(context, 1)?])?[..] else {
            return Err(wrong("depth must be a scalar"));
        };
        let mut out_shape = shape.clone();
        out_shape.insert(axis, depth);
        let out = output(context, 0, &out_shape)?;
        let (outer, inner) = (shapes::count(&shape[..axis]), shapes::count(&shape[axis..]));
        let dtype = index.dtype();
        launch(context, "OneHot", [&index, &on, &off], [&out], move |[index, on, off], [out]| {
            let sizes = [outer, inner];
            let index = match dtype {
                DType::Uint8 => view::<u8>(index, &sizes)?.mapv(i64::from),
                dtype => indices(index, dtype == DType::Int32, &sizes)?,
            };
            let out = view_mut::<T::Bits>(out, &[outer, depth, inner])?;
            arrange::one_hot(index.view(), out, scalar(on)?, scalar(off)?);
            Ok(())
        })
    }
}

struct Range<T>(PhantomData<T>);

macro_rules! ranges {
    ($($number:ty, $count:expr;)*) => {$(
        #[kernel(
            op = "Range",
            types(Tidx = [$number]),
            host_memory("start", "limit", "delta", "output")
        )]
        impl Kernel for Range<$number> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let [start, limit, delta] = [0, 1, 2].map(|at| context.host_scalar::<$number>(at));
                let (start, limit, delta) = (start?, limit?, delta?);
                let zero = <$number>::default();
                ensure!(delta != zero, wrong("Requires delta != 0: 0"));
                ensure!(
                    if delta > zero { start <= limit } else { start >= limit },
                    wrong(format!("Requires start and limit on the sides of delta: {start}, {limit}, {delta}"))
                );
                let count: fn($number, $number, $number) -> i64 = $count;
                let mut out = context.host_output::<$number>(0, &[count(start, limit, delta)])?;
                let mut value = start;
                for out in out.as_mut_slice() {
                    *out = value;
                    value += delta;
                }
                Ok(())
            }
        }
    )*};
}

ranges! {
    f32, |start, limit, delta| ((limit - start) / delta).abs().ceil() as i64;
    f64, |start, limit, delta| ((limit - start) / delta).abs().ceil() as i64;
    i64, |start, limit, delta| {
        limit.abs_diff(start).div_ceil(delta.unsigned_abs()).try_into().unwrap_or(i64::MAX)
    };
}
