//! Copies elements to other places. Their values do not matter, so all types of a size share one shader.

use super::*;
use se_plugin::toolkit::slice::Steps;

/// The most axes in `shaders/strided_copy.comp`.
const MOST_AXES: usize = 9;

/// The order in which `shaders/strided_copy.comp` visits the elements of two tensors.
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
            let step = stride as isize;
            stride *= size;
            step
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

/// Returns the steps in a dense tensor that is broadcast to so many axes.
pub(super) fn broadcast(shape: &[usize], axes: usize) -> Vec<isize> {
    let steps = strides(shape).into_iter().zip(shape);
    let steps = steps.map(|(stride, &size)| if size == 1 { 0 } else { stride });
    core::iter::repeat_n(0, axes - shape.len()).chain(steps).collect()
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
pub(super) fn rearrange(
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
pub(super) fn input_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    shape(&context.input(index)?)
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
