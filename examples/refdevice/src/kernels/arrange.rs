//! Kernels that move elements, such as `Transpose` and `Pad`. They copy bytes and ignore the type.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::Steps;

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

/// Returns the shape of input `index`.
fn input_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    shape(&context.input(index)?)
}

/// Checks that `order` is a permutation of the axes, and returns it. Negative axes count from the end.
fn permutation(order: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = order.iter().map(|&axis| shapes::axis(axis, rank)).collect::<Result<Vec<_>>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    ensure!(
        sorted.into_iter().eq(0..rank),
        wrong(format!("{order:?} is not a permutation of {rank} axes"))
    );
    Ok(axes)
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
        let shape = input_shape(context, 0)?;
        let order = permutation(&context.host_integers(1)?, shape.len())?;
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

/// Pads the input with `value`.
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
