//! Moves elements to other places. Their values do not matter, so all types of a size share one shader.

use super::*;
use core::marker::PhantomData;
use se_plugin::toolkit::slice::Steps;

/// The most axes in `shaders/move.comp`.
const MOST_AXES: usize = 9;

/// The order in which `shaders/move.comp` visits the elements of two tensors.
#[derive(Clone, Default)]
pub(super) struct Walk {
    /// The index of the first element in each tensor.
    pub(super) from: [usize; 2],
    /// For each axis: how many elements, and the steps in the source and in the target.
    pub(super) axes: Vec<(usize, [isize; 2])>,
}

/// Returns the step from one index to the next along each axis of a dense tensor.
pub(super) fn strides(shape: &[usize]) -> Vec<isize> {
    let mut stride = 1;
    let mut all: Vec<_> = shape
        .iter()
        .rev()
        .map(|&size| {
            let own = stride as isize;
            stride *= size;
            own
        })
        .collect();
    all.reverse();
    all
}

impl Walk {
    /// Creates a walk over all of `shape`, with these steps in the source and the target.
    pub(super) fn new(shape: &[usize], source: &[isize], target: &[isize]) -> Self {
        let steps = source.iter().zip(target).map(|(&source, &target)| [source, target]);
        Self { from: [0, 0], axes: shape.iter().copied().zip(steps).collect() }
    }

    /// Returns the axes without those of size 1, and with neighbours merged that can be one axis.
    fn merged(&self) -> Vec<(usize, [isize; 2])> {
        let mut merged: Vec<(usize, [isize; 2])> = Vec::new();
        for &(len, steps) in self.axes.iter().rev().filter(|axis| axis.0 != 1) {
            match merged.last_mut() {
                Some((last, of)) if (0..2).all(|i| steps[i] == of[i] * *last as isize) => {
                    *last *= len;
                }
                _ => merged.push((len, steps)),
            }
        }
        if merged.is_empty() {
            merged.push((1, [1, 1]));
        }
        merged.reverse();
        merged
    }

    /// Enqueues the copies. If the source is a value, it is written to each place.
    pub(super) fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        source: Operand<'_>,
        target: &DeviceTensor,
    ) -> Result<()> {
        if let Operand::At(tensor, _) = source {
            word(tensor.len())?;
        }
        word(target.len())?;
        let from = self.from.map(|from| from as isize);
        enqueue_axes(context, op, source, target, from, self.merged())
    }
}

/// Enqueues one launch; for too many axes, one for each index of an axis.
fn enqueue_axes(
    context: &Run<'_>,
    op: &'static str,
    source: Operand<'_>,
    target: &DeviceTensor,
    from: [isize; 2],
    mut axes: Vec<(usize, [isize; 2])>,
) -> Result<()> {
    let shortest = (0..axes.len()).min_by_key(|&axis| axes[axis].0);
    if let Some(shortest) = shortest.filter(|_| axes.len() > MOST_AXES) {
        let (len, steps) = axes.remove(shortest);
        return (0..len as isize).try_for_each(|index| {
            let from = [0, 1].map(|i| from[i] + index * steps[i]);
            enqueue_axes(context, op, source, target, from, axes.clone())
        });
    }
    let count = axes.iter().map(|axis| axis.0).product();
    let size = bytes(target)?;
    let mut numbers = vec![word(count)?];
    for (len, steps) in &axes {
        let step = |step: isize| i32::try_from(step).map_err(|_| wrong("a step is too large"));
        numbers.extend([*len as u32, step(steps[0])? as u32, step(steps[1])? as u32]);
    }
    let at = |place: isize| place as u64 * u64::from(size);
    let (source, is_value) = match source {
        Operand::At(tensor, offset) => (Operand::At(tensor, offset + at(from[0])), false),
        value => (value, true),
    };
    Launch {
        op,
        shader: shader!("strided_copy"),
        constants: &[size, axes.len() as u32, is_value.into()],
        operands: &[source, Operand::At(target, at(from[1]))],
        numbers: &numbers,
        groups: groups(count),
    }
    .enqueue(context)
}

/// Returns a walk over the elements of a slice, to a dense tensor.
pub(super) fn slice(shape: &[usize], steps: &[Steps]) -> Walk {
    let sizes: Shape = steps.iter().map(|steps| steps.count).collect();
    let dense = strides(shape);
    let source: Vec<_> = steps.iter().zip(&dense).map(|(one, stride)| one.step * stride).collect();
    let mut walk = Walk::new(&sizes, &source, &strides(&sizes));
    walk.from[0] = steps.iter().zip(&dense).map(|(one, &stride)| one.start * stride as usize).sum();
    walk
}

impl Walk {
    /// Swaps source and target.
    pub(super) fn reversed(mut self) -> Self {
        self.from.reverse();
        self.axes.iter_mut().for_each(|axis| axis.1.reverse());
        self
    }
}

#[cold]
pub(super) fn too_large() -> Error {
    wrong("the result would have a size beyond all numbers")
}

/// Defines kernels that move elements of any type, or of `types`, and have no attributes.
macro_rules! movers {
    ($($op:literal $name:ident $index:tt $host:tt = $body:expr;)*) => {
        movers! {
            types [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
            $($op $name $index $host = $body;)*
        }
    };
    (types $types:tt $($op:literal $name:ident $index:tt $host:tt = $body:expr;)*) => {
        $(movers!(@one $types $op $name $index $host = $body);)*
    };
    (@one $types:tt $op:literal $name:ident ($($index:ident)?) $host:tt = $body:expr) => {
        struct $name<T>(PhantomData<T>);

        #[kernel(
            op = $op,
            types(
                T = $types
                $(, $index = [i32, i64])?
            ),
            host_memory $host
        )]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    };
}
pub(super) use movers;

/// Returns the steps in a dense tensor that is broadcast to so many axes.
pub(super) fn broadcast(shape: &[usize], axes: usize) -> Vec<isize> {
    let own = strides(shape).into_iter().zip(shape);
    let own = own.map(|(stride, &size)| if size == 1 { 0 } else { stride });
    core::iter::repeat_n(0, axes - shape.len()).chain(own).collect()
}

/// Returns output 0 with the elements of input 0, in its memory if nothing else uses it.
pub(super) fn copy_of_input(context: &Run<'_>, op: &'static str) -> Result<DeviceTensor> {
    // The input is not held here, which would count as a use.
    let shape = context.input(0)?.shape().to_vec();
    let (out, forwarded) = context.forward_or_output(&[0], 0, &shape)?;
    if forwarded.is_none() {
        let walk = Walk::new(&[out.len()], &[1], &[1]);
        walk.enqueue(context, op, (&context.input(0)?).into(), &out)?;
    }
    Ok(out)
}

/// Moves all elements of input 0 to a dense output of this shape. `source` holds the steps in the input for each axis.
fn rearrange(
    context: &Run<'_>,
    op: &'static str,
    out_shape: &[usize],
    source: &[isize],
    from: usize,
) -> Result<()> {
    let input = context.input(0)?;
    let out = output(context, 0, out_shape)?;
    let mut walk = Walk::new(out_shape, source, &strides(out_shape));
    walk.from[0] = from;
    walk.enqueue(context, op, (&input).into(), &out)
}

/// Returns the shape of input `index`.
fn input_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    shape(&context.input(index)?)
}

/// Returns all axes in this order; a negative axis counts from the end. Checks that it is a permutation.
fn permutation(order: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = order.iter().map(|&axis| shapes::axis(axis, rank)).collect::<Result<Vec<_>>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(wrong(format!("{order:?} is not a permutation of {rank} axes")));
    }
    Ok(axes)
}

movers! {
    "Tile" Tile (Tmultiples) ("multiples") = |context, op| {
        let (shape, multiples) = (input_shape(context, 0)?, host_shape(context, 1)?);
        if shape.len() != multiples.len() {
            return Err(wrong(format!("Expected multiples argument to be a vector of length {} but got length {}", shape.len(), multiples.len())));
        }
        let out_shape = shape.iter().zip(&multiples).map(|(size, times)| size.checked_mul(*times));
        let out_shape: Shape = out_shape.collect::<Option<_>>().ok_or_else(too_large)?;
        let (input, out) = (context.input(0)?, output(context, 0, &out_shape)?);
        // Each axis becomes two: the repetitions, and the elements.
        let mut walk = Walk::default();
        for (axis, (from, to)) in strides(&shape).into_iter().zip(strides(&out_shape)).enumerate() {
            walk.axes.push((multiples[axis], [0, to * shape[axis] as isize]));
            walk.axes.push((shape[axis], [from, to]));
        }
        walk.enqueue(context, op, (&input).into(), &out)
    };
    "BroadcastTo" BroadcastTo (Tidx) ("shape") = |context, op| {
        let (shape, out) = (input_shape(context, 0)?, host_shape(context, 1)?);
        if !shapes::broadcasts_to(&shape, &out) {
            return Err(wrong(format!("Incompatible shapes: {shape:?} vs. {out:?}")));
        }
        rearrange(context, op, &out, &broadcast(&shape, out.len()), 0)
    };
    "Transpose" Transpose (Tperm) ("perm") = |context, op| {
        let shape = input_shape(context, 0)?;
        let order = permutation(&context.host_integers(1)?, shape.len())?;
        let dense = strides(&shape);
        let out: Shape = order.iter().map(|&axis| shape[axis]).collect();
        let source: Vec<_> = order.iter().map(|&axis| dense[axis]).collect();
        rearrange(context, op, &out, &source, 0)
    };
    "ReverseV2" ReverseV2 (Tidx) ("axis") = |context, op| {
        let shape = input_shape(context, 0)?;
        let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
        let mut source = strides(&shape);
        let mut from = 0;
        for axis in axes {
            from += shape[axis].saturating_sub(1) * source[axis] as usize;
            source[axis] = -source[axis];
        }
        rearrange(context, op, &shape, &source, from)
    };
    "Pad" Pad (Tpaddings) ("paddings") = |context, op| pad(context, op, 0);
    "PadV2" PadV2 (Tpaddings) ("paddings", "constant_values") =
        |context, op| pad(context, op, bits(context.host_scalar::<T>(2)?)?);
}

// TensorFlow keeps int32 on the host, and has kernels for it there.
movers! {
    types [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "Slice" Slice (Index) ("begin", "size") = |context, op| {
        let shape = input_shape(context, 0)?;
        let (begin, size) = (context.host_integers(1)?, context.host_integers(2)?);
        if begin.len() != shape.len() || size.len() != shape.len() {
            return Err(wrong(format!("begin {begin:?} and size {size:?} do not fit the shape {shape:?}")));
        }
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
        let walk = slice(&shape, &steps);
        let sizes: Shape = steps.iter().map(|steps| steps.count).collect();
        let (input, out) = (context.input(0)?, output(context, 0, &sizes)?);
        walk.enqueue(context, op, (&input).into(), &out)
    };
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
            if own != *first {
                return Err(wrong(format!("ConcatOp : Dimension {axis} in both shapes must be equal: {first:?} vs. {size:?}")));
            }
        }
        let out = output(context, 0, &out_shape)?;
        let target = strides(&out_shape);
        let mut start = 0;
        for (part, size) in parts.iter().zip(&sizes) {
            let mut walk = Walk::new(size, &strides(size), &target);
            walk.from[1] = start * target[axis] as usize;
            start += size[axis];
            walk.enqueue(context, op, part.into(), &out)?;
        }
        Ok(())
    };
}

/// Returns the bytes of an element as a number.
fn bits<T: Element>(element: T) -> Result<u64> {
    let number: &dyn core::any::Any = &element;
    macro_rules! of {
        ($($t:ty => $bits:expr;)*) => {$(
            if let Some(number) = number.downcast_ref::<$t>() {
                let bits: fn(&$t) -> u64 = $bits;
                return Ok(bits(number));
            }
        )*};
    }
    of! {
        f32 => |x| x.to_bits().into();
        f64 => |x| x.to_bits();
        f16 => |x| x.to_bits().into();
        bf16 => |x| x.to_bits().into();
        i8 => |x| *x as u64;
        i16 => |x| *x as u64;
        i32 => |x| *x as u64;
        i64 => |x| *x as u64;
        u8 => |x| u64::from(*x);
        u16 => |x| u64::from(*x);
        u32 => |x| u64::from(*x);
        u64 => |x| *x;
        bool => |x| u64::from(*x);
    }
    Err(Error::new(Code::Unimplemented, format!("no value can be of type {}", T::DTYPE)))
}

/// Copies the input into an output that is padded with a value.
fn pad(context: &Run<'_>, op: &'static str, value: u64) -> Result<()> {
    let shape = input_shape(context, 0)?;
    let paddings = host_shape(context, 1)?;
    if paddings.len() != 2 * shape.len() {
        return Err(wrong(format!(
            "The first dimension of paddings must be the rank of inputs: {paddings:?}, {shape:?}"
        )));
    }
    let out_shape = shape.iter().zip(paddings.chunks(2));
    let out_shape = out_shape.map(|(size, pair)| size.checked_add(pair[0])?.checked_add(pair[1]));
    let out_shape: Shape = out_shape.collect::<Option<_>>().ok_or_else(too_large)?;
    let (input, out) = (context.input(0)?, output(context, 0, &out_shape)?);
    let target = strides(&out_shape);
    fill(context, op, Operand::Value(value), &out)?;
    let mut walk = Walk::new(&shape, &strides(&shape), &target);
    walk.from[1] = target.iter().zip(paddings.chunks(2)).map(|(t, p)| p[0] * *t as usize).sum();
    walk.enqueue(context, op, (&input).into(), &out)
}

/// Writes one element, or a value, to all places.
pub(super) fn fill(
    context: &Run<'_>,
    op: &'static str,
    source: Operand<'_>,
    out: &DeviceTensor,
) -> Result<()> {
    Walk::new(&[out.len()], &[0], &[1]).enqueue(context, op, source, out)
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
impl<T: Element> Kernel for Fill<T> {
    type Platform = GpuPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let value = context.input(1)?;
        if value.len() != 1 {
            return Err(wrong("value must be a scalar"));
        }
        let out = output(context, 0, &host_shape(context, 0)?)?;
        fill(context, "Fill", (&value).into(), &out)
    }
}

/// A tensor with any elements, or with zeros.
struct Empty<T> {
    with_zeros: bool,
    elements: PhantomData<T>,
}

#[allow(non_camel_case_types, reason = "the attribute has this name")]
const _: () = {
    #[kernel(
        op = "Empty",
        types(dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]),
        host_memory("shape")
    )]
    impl<dtype: Element> Kernel for Empty<dtype> {
        type Platform = GpuPlatform;

        fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self { with_zeros: construction.attr("init")?, elements: PhantomData })
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
            let out = output(context, 0, &host_shape(context, 0)?)?;
            if self.with_zeros {
                fill(context, "Empty", Operand::Value(0), &out)?;
            }
            Ok(())
        }
    }
};

untyped! {
    "Bitcast" Bitcast () = bitcast;
}

/// Returns the same bytes as elements of another type. An element that becomes several has a new axis for them.
fn bitcast(context: &Run<'_>, op: &'static str) -> Result<()> {
    let (input, to) = (context.input(0)?, context.output_dtype(0)?);
    let mut out_shape = shape(&input)?;
    let plain = || wrong("the elements are not plain bytes");
    let size = input.dtype().size().ok_or_else(plain)?;
    let new_size = to.size().ok_or_else(plain)?;
    if size > new_size {
        out_shape.push(size / new_size);
    } else if size < new_size && out_shape.pop() != Some(new_size / size) {
        return Err(wrong(format!(
            "Cannot bitcast from {} to {to} because the last dimension of the shape {:?} is not {}",
            input.dtype(),
            input.shape(),
            new_size / size
        )));
    }
    let out = output(context, 0, &out_shape)?;
    // Moves all bytes, as many at a time as shaders can move: an element of complex128 has 16.
    let part = size.min(new_size).min(8);
    let count = word(out.len().saturating_mul(new_size / part))?;
    Launch {
        op,
        shader: shader!("strided_copy"),
        constants: &[part as u32, 1, 0],
        operands: &[(&input).into(), (&out).into()],
        numbers: &[count, count, 1, 1],
        groups: groups(count as usize),
    }
    .enqueue(context)
}
