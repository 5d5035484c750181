//! Reductions. The numbers are those of the ops in `shaders/reduce.comp`.

use super::*;
use core::marker::PhantomData;

/// From so many elements for a result on, a workgroup computes it, not a thread.
pub(super) const WIDE: usize = 1024;

/// Folds the elements of `input` along some axes.
fn fold(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    let (types, operands) = ([input.dtype(), out.dtype()], [input.into(), out.into()]);
    with(op, number, &shape(input)?, axes, types, &operands, |launch| launch.enqueue(context))
}

/// Returns what `then` makes of the launch that folds the elements of a tensor of this shape.
pub(super) fn with<R>(
    op: &'static str,
    number: u32,
    shape: &[usize],
    axes: &[usize],
    [input, out]: [DType; 2],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    // Neighbours that both stay, or both go, are one axis.
    let mut merged: Vec<(bool, usize, usize)> = Vec::new();
    let mut stride = 1;
    for (axis, &size) in shape.iter().enumerate().rev() {
        let goes = axes.contains(&axis);
        match merged.last_mut() {
            _ if size == 1 => {}
            Some((last, len, _)) if *last == goes => *len *= size,
            _ => merged.push((goes, size, stride)),
        }
        stride *= size;
    }
    let of = |goes| merged.iter().rev().filter(move |axis| axis.0 == goes);
    let (kept, count) = (of(false).count(), axes.iter().map(|&axis| shape[axis]).product());
    let results = of(false).map(|axis| axis.1).product();
    let mut numbers = vec![word(results)?, word(count)?, kept as u32, merged.len() as u32];
    word(stride)?;
    for (_, len, stride) in of(false).chain(of(true)) {
        numbers.extend([*len as u32, *stride as u32]);
    }
    let is_position = number == ARGMAX || number == ARGMIN;
    let is_wide = count >= WIDE && !is_position;
    let threads = if is_wide { results.saturating_mul(256) } else { results };
    let shader = if is_float(input) { shader!("reduce.float") } else { shader!("reduce.int64") };
    then(&Launch {
        op,
        shader,
        constants: &[number, element_type(input)?, element_type(out)?, is_wide.into()],
        operands,
        numbers: &numbers,
        groups: groups(threads),
    })
}

const ARGMAX: u32 = 7;
const ARGMIN: u32 = 8;

/// The sums of `input` along some axes.
pub(super) fn sum(
    context: &Run<'_>,
    op: &'static str,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    fold(context, op, 0, input, axes, out)
}

/// Folds the first input along the axes in the second, which is in host memory.
fn reduce(context: &Run<'_>, op: &'static str, number: u32, keep: bool) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
    let out = output(context, 0, &shapes::reduced_shape(&shape, &axes, keep))?;
    fold(context, op, number, &input, &axes, &out)
}

/// A reduction with its number.
macro_rules! reductions {
    ($($op:literal $name:ident<$($t:ident)?> ($($types:tt)*) = $number:literal;)*) => {$(
        struct $name$(<$t>)? {
            keep: bool,
            $(elements: PhantomData<$t>,)?
        }

        #[kernel(
            op = $op,
            types($($types)* Tidx = [i32, i64]),
            host_memory("reduction_indices")
        )]
        impl$(<$t: Element>)? Kernel for $name$(<$t>)? {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self {
                    keep: construction.attr("keep_dims")?,
                    $(elements: PhantomData::<$t>,)?
                })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                reduce(context, $op, $number, self.keep)
            }
        }
    )*};
}

reductions! {
    "Sum" Sum<T> (T = [f32, f16, bf16, i64],) = 0;
    "Mean" Mean<T> (T = [f32, f16, bf16],) = 1;
    "Prod" Prod<T> (T = [f32, f16, bf16, i64],) = 2;
    "Max" Max<T> (T = [f32, f16, bf16, i64],) = 3;
    "Min" Min<T> (T = [f32, f16, bf16, i64],) = 4;
    "All" All<> () = 5;
    "Any" Any<> () = 6;
}

macro_rules! positions {
    ($($op:literal $name:ident = $number:ident;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[kernel(
            op = $op,
            types(T = [f32, f16, bf16, i64], Tidx = [i32, i64], output_type = [i32, i64]),
            host_memory("dimension")
        )]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let input = context.input(0)?;
                let shape = shape(&input)?;
                let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
                if shape[axis] == 0 {
                    return Err(wrong(format!("Reduction axis {axis} is empty in shape {shape:?}")));
                }
                let out = output(context, 0, &shapes::reduced_shape(&shape, &[axis], false))?;
                fold(context, $op, $number, &input, &[axis], &out)
            }
        }
    )*};
}

positions! {
    "ArgMax" ArgMax = ARGMAX;
    "ArgMin" ArgMin = ARGMIN;
}

kernels! {
    types [f32, f16, bf16]
    "L2Loss" L2Loss = |run, op| {
        let input = run.input(0)?;
        let axes: Vec<usize> = (0..input.shape().len()).collect();
        fold(run, op, 9, &input, &axes, &output(run, 0, &[])?)
    };
}
