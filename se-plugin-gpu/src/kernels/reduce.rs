//! Reductions. The numbers are those of the ops in `shaders/reduce.comp`.

use super::*;

/// From this many elements on, a workgroup computes a result, else a thread does.
pub(super) const WIDE: usize = 1024;

/// Workgroups that keep a GPU busy. Fewer results of many elements are computed in pieces first.
const BUSY: usize = 1024;

/// The fewest elements of a piece.
const PIECE: usize = 4096;

/// Of at most this many results a workgroup computes each, from as many elements on.
const FEW: usize = 64;

/// The elements in a turn of a loop of `shaders/reduce.comp`, where a workgroup computes a result.
const EACH: usize = 4;

/// The most axes in the shader.
const MOST_AXES: usize = 12;

/// An axis of the input.
#[derive(Clone, Copy)]
struct Axis {
    /// Whether elements are reduced along it, or else kept.
    goes: bool,
    len: usize,
    stride: usize,
}

/// Returns the axes of a tensor, innermost first, without size 1. Neighbours are merged if both stay or both go.
fn merged(shape: &[usize], axes: &[usize]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::new();
    let mut stride = 1;
    for (axis, &len) in shape.iter().enumerate().rev() {
        let goes = axes.contains(&axis);
        match merged.last_mut() {
            _ if len == 1 => {}
            Some(last) if last.goes == goes => last.len *= len,
            _ => merged.push(Axis { goes, len, stride }),
        }
        stride *= len;
    }
    merged
}

/// Reduces the elements of `input` along some axes.
fn fold(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    word(input.len())?;
    fold_at(context, op, number, &merged(&shape(input)?, axes), [(input, 0), (out, 0)])
}

/// Does the same from an element of the input, and an element of the output. If there are too many
/// axes, it enqueues a launch for each index of a kept axis.
fn fold_at(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    axes: &[Axis],
    [(input, from), (out, to)]: [(&DeviceTensor, usize); 2],
) -> Result<()> {
    let kept = axes.iter().rposition(|axis| !axis.goes).filter(|_| axes.len() > MOST_AXES);
    if let Some(kept) = kept {
        let mut rest = axes.to_vec();
        let outer = rest.remove(kept);
        let step = results(&rest);
        return (0..outer.len).try_for_each(|index| {
            let places = [(input, from + index * outer.stride), (out, to + index * step)];
            fold_at(context, op, number, &rest, places)
        });
    }
    if let Some((first, then)) = in_pieces(number, axes) {
        let dtype = if is_float(input.dtype()) { DType::Float32 } else { out.dtype() };
        let pieces = context.temporary(dtype, &[results(&first) as i64])?;
        fold_at(context, op, number, &first, [(input, from), (&pieces, 0)])?;
        // Each piece is half a sum of squares already.
        let number = if number == L2 { SUM } else { number };
        return fold_at(context, op, number, &then, [(&pieces, 0), (out, to)]);
    }
    ensure_turns(context, op, turns(axes, is_wide(number, axes)))?;
    let at = |tensor, place: usize| -> Result<u64> { Ok(place as u64 * u64::from(bytes(tensor)?)) };
    let operands = [Operand::At(input, at(input, from)?), Operand::At(out, at(out, to)?)];
    let types = [input.dtype(), out.dtype()];
    launch(op, number, axes, types, &operands, |launch| launch.enqueue(context))
}

/// Splits a reduction with few results of many elements in two. Returns the axes of the first, to pieces of the same size, and
/// of the second, of the pieces. `None`: it stays one.
fn in_pieces(number: u32, axes: &[Axis]) -> Option<(Vec<Axis>, Vec<Axis>)> {
    let most = (BUSY / results(axes).max(1)).min(elements(axes) / PIECE);
    if is_position(number) || axes.len() >= MOST_AXES {
        return None;
    }
    let split = axes.iter().rposition(|axis| axis.goes)?;
    let Axis { len, stride, .. } = axes[split];
    let pieces = (2..=most.min(len)).rev().find(|pieces| len.is_multiple_of(*pieces))?;
    let mut first = axes.to_vec();
    first[split].len /= pieces;
    let piece = Axis { goes: false, len: pieces, stride: stride * (len / pieces) };
    first.insert(split + 1, piece);
    let (mut then, mut dense) = (Vec::new(), 1);
    for (at, axis) in first.iter().enumerate().filter(|(_, axis)| !axis.goes) {
        then.push(Axis { goes: at == split + 1, len: axis.len, stride: dense });
        dense *= axis.len;
    }
    Some((first, then))
}

/// Returns the number of results.
fn results(axes: &[Axis]) -> usize {
    axes.iter().filter(|axis| !axis.goes).map(|axis| axis.len).product()
}

/// Returns the number of elements of a result.
fn elements(axes: &[Axis]) -> usize {
    axes.iter().filter(|axis| axis.goes).map(|axis| axis.len).product()
}

/// Returns whether a workgroup computes a result, or else each thread.
fn is_wide(number: u32, axes: &[Axis]) -> bool {
    let (results, count) = (results(axes), elements(axes));
    // For many positions along an axis that is not the last, neighbouring threads read neighbouring elements.
    // Few threads with many elements would leave the GPU idle.
    let least = if results <= FEW && !is_position(number) { FEW } else { WIDE };
    count >= least && (!is_position(number) || results <= count)
}

/// Returns the turns of the loops of `shaders/reduce.comp` for a result.
fn turns(axes: &[Axis], is_wide: bool) -> usize {
    let (lanes, each) = if is_wide { (256, EACH) } else { (1, 1) };
    let each_lane = elements(axes).div_ceil(lanes);
    // The place of each element along more than one axis is a loop.
    let gone = match axes.iter().filter(|axis| axis.goes).count() {
        1 => 0,
        more => more + 1,
    };
    each_lane.div_ceil(each) + each_lane * gone + axes.len() + 8
}

/// Passes the launch that reduces a tensor of this shape to `then`, and returns what that returns.
pub(super) fn with<R>(
    op: &'static str,
    number: u32,
    shape: &[usize],
    axes: &[usize],
    types: [DType; 2],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    launch(op, number, &merged(shape, axes), types, operands, then)
}

fn launch<R>(
    op: &'static str,
    number: u32,
    axes: &[Axis],
    [input, out]: [DType; 2],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    let of = |goes| axes.iter().rev().filter(move |axis| axis.goes == goes);
    let (kept, results, count) = (of(false).count(), results(axes), elements(axes));
    let mut numbers = vec![word(results)?, word(count)?, kept as u32, axes.len() as u32];
    for axis in of(false).chain(of(true)) {
        numbers.extend([axis.len as u32, axis.stride as u32]);
    }
    let is_wide = is_wide(number, axes);
    let shader = if is_float(input) { shader!("reduce.float") } else { shader!("reduce.int64") };
    then(&Launch {
        op,
        shader,
        constants: &[
            number,
            element_type(input)?,
            element_type(out)?,
            is_wide.into(),
            (axes.len() == kept + 1).into(),
        ],
        operands,
        numbers: &numbers,
        groups: groups_of(results, is_wide),
    })
}

const SUM: u32 = 0;
const ARGMAX: u32 = 7;
const ARGMIN: u32 = 8;
const L2: u32 = 9;

fn is_position(number: u32) -> bool {
    number == ARGMAX || number == ARGMIN
}

/// Computes the sums of `input` along some axes.
pub(super) fn sum(
    context: &Run<'_>,
    op: &'static str,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    fold(context, op, SUM, input, axes, out)
}

/// Reduces the first input along the axes in the second, which is in host memory.
fn reduce(context: &Run<'_>, op: &'static str, number: u32, keep: bool) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
    let out = output(context, 0, &shapes::reduced_shape(&shape, &axes, keep))?;
    fold(context, op, number, &input, &axes, &out)
}

/// Reads whether reduced axes stay, with the size 1.
fn keep_dims(construction: &OpKernelConstruction<'_>) -> Result<bool> {
    construction.attr("keep_dims")
}

/// Finds the position of an extreme along an axis.
fn position(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
    if shape[axis] == 0 {
        return Err(wrong(format!("Reduction axis {axis} is empty in shape {shape:?}")));
    }
    let out = output(context, 0, &shapes::reduced_shape(&shape, &[axis], false))?;
    fold(context, op, number, &input, &[axis], &out)
}

kernels! {
    types (T = [f32, f16, bf16, i64], Tidx = [i32, i64])
    "Sum" Sum [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 0, *keep);
    "Prod" Prod [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 2, *keep);
    "Max" Max [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 3, *keep);
    "Min" Min [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 4, *keep);
    types (T = [f32, f16, bf16], Tidx = [i32, i64])
    "Mean" Mean [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 1, *keep);
    types ()
    "All" All [bool = keep_dims] (types(Tidx = [i32, i64]), host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 5, *keep);
    "Any" Any [bool = keep_dims] (types(Tidx = [i32, i64]), host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 6, *keep);
    types (T = [f32, f16, bf16, i64], Tidx = [i32, i64], output_type = [i32, i64])
    "ArgMax" ArgMax (host_memory("dimension")) = |run, op| position(run, op, ARGMAX);
    "ArgMin" ArgMin (host_memory("dimension")) = |run, op| position(run, op, ARGMIN);
    types (T = [f32, f16, bf16])
    "L2Loss" L2Loss () = |run, op| {
        let input = run.input(0)?;
        let axes: Vec<usize> = (0..input.shape().len()).collect();
        fold(run, op, L2, &input, &axes, &output(run, 0, &[])?)
    };
}
