//! Adds rows to others, subtracts them or replaces others: in variables, in tensors, and in sums of segments. The
//! numbers are those of the ops in `shaders/scatter.comp`. A row for a place outside of the tensor changes nothing.

use super::gather_nd::Axes;
use super::strided_copy::{copy_of_input, fill};
use super::*;

/// The most rows of updates at a time, a multiple of 256: on lavapipe neither `links` nor `scatter` may take 65,536 turns.
const ROWS: usize = 1 << 14;

/// The number of a sum.
pub(super) const ADD: u32 = 0;

/// No row: NONE in `shaders/common.glsl`.
const NONE: u64 = u32::MAX as u64;

/// Changes rows of `target` in place, which `indices` select along these axes. `updates` has a row
/// for each, or is one element.
fn scatter(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    [target, indices, updates]: [&DeviceTensor; 3],
    axes: &Axes<'_>,
) -> Result<()> {
    let inner = shapes::count(&shape(target)?[axes.sizes.len()..]);
    word(target.len())?;
    let changes = word(axes.count.saturating_mul(inner))?;
    if changes == 0 || target.is_empty() {
        return Ok(());
    }
    let (inner, places) = (inner as u32, axes.places(context, op, indices)?);
    let links = context.temporary(DType::Uint32, &[axes.count as i64])?;
    let heads = context.temporary(DType::Uint32, &[shapes::count(axes.sizes) as i64])?;
    let steps = if updates.shape().is_empty() { [0, 0] } else { [inner, 1] };
    let most = if context.stream().queue.gpu.most_turns.is_some() { ROWS } else { axes.count };
    for from in (0..axes.count).step_by(most) {
        let to = axes.count.min(from + most);
        fill(context, op, Operand::Value(NONE), &heads)?;
        Launch {
            op,
            shader: shader!("links"),
            constants: &[],
            operands: &[(&places).into(), (&links).into(), (&heads).into()],
            numbers: &[from as u32, to as u32],
            groups: [1, 1, 1],
        }
        .enqueue(context)?;
        Launch {
            op,
            shader: variant!("scatter", target.dtype()),
            constants: &[number, element_type(target.dtype())?],
            operands: &[
                target.into(),
                updates.into(),
                (&places).into(),
                (&links).into(),
                (&heads).into(),
            ],
            numbers: &[from as u32, to as u32, inner, steps[0], steps[1]],
            groups: groups((to - from) * inner as usize),
        }
        .enqueue(context)?;
    }
    Ok(())
}

/// Does so along the first axis. `updates` has the shape of `indices` followed by that of a row, or is one element.
pub(super) fn scatter_rows(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    [target, indices, updates]: [&DeviceTensor; 3],
) -> Result<()> {
    let (target_shape, update_shape) = (shape(target)?, shape(updates)?);
    let Some((_, rest)) = target_shape.split_first() else {
        return Err(wrong(format!("{op} has no rows to change: a scalar")));
    };
    let index_shape = shape(indices)?;
    ensure!(
        update_shape.is_empty() || update_shape == [&index_shape[..], rest].concat(),
        wrong(format!(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape \
             {update_shape:?}, indices.shape {index_shape:?}, params.shape {target_shape:?}"
        ))
    );
    let axes = Axes { sizes: &target_shape[..1], count: indices.len() };
    scatter(context, op, number, [target, indices, updates], &axes)
}

/// Does so along as many axes as each index has numbers.
fn scatter_nd(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    [target, indices, updates]: [&DeviceTensor; 3],
) -> Result<()> {
    let (target_shape, index_shape) = (shape(target)?, shape(indices)?);
    let axes = Axes::of(op, &index_shape, &target_shape)?;
    let rest = &target_shape[axes.sizes.len()..];
    let (expected, found) =
        ([&index_shape[..index_shape.len() - 1], rest].concat(), shape(updates)?);
    ensure!(
        found == expected,
        wrong(format!(
            "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:], got updates.shape \
             {found:?}, indices.shape {index_shape:?}, params.shape {target_shape:?}"
        ))
    );
    scatter(context, op, number, [target, indices, updates], &axes)
}

/// Returns the CPU's value for empty segments: the number that changes nothing, but not infinity.
fn neutral(number: u32, dtype: DType) -> u64 {
    match (number, dtype) {
        (3, DType::Float32) => 1f32.to_bits().into(),
        (3, DType::Float64) => 1f64.to_bits(),
        (3, DType::Float16) => f16::ONE.to_bits().into(),
        (3, DType::Bfloat16) => bf16::ONE.to_bits().into(),
        (3, _) => 1,
        (6, DType::Float32) => f32::MIN.to_bits().into(),
        (6, DType::Float64) => f64::MIN.to_bits(),
        (6, DType::Float16) => f16::MIN.to_bits().into(),
        (6, DType::Bfloat16) => bf16::MIN.to_bits().into(),
        (6, _) => i64::MIN as u64,
        (7, DType::Float32) => f32::MAX.to_bits().into(),
        (7, DType::Float64) => f64::MAX.to_bits(),
        (7, DType::Float16) => f16::MAX.to_bits().into(),
        (7, DType::Bfloat16) => bf16::MAX.to_bits().into(),
        (7, _) => i64::MAX as u64,
        _ => 0,
    }
}

fn segment(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let (data, ids) = (context.input(0)?, context.input(1)?);
    let (shape, id_shape) = (shape(&data)?, shape(&ids)?);
    let Some(rest) = shape.strip_prefix(&id_shape[..]) else {
        return Err(wrong(format!(
            "data.shape = {shape:?} does not start with segment_ids.shape = {id_shape:?}"
        )));
    };
    let mut out_shape = from_host(&[host_integer(context, 2)?])?;
    out_shape.extend(rest);
    let out = output(context, 0, &out_shape)?;
    fill(context, op, Operand::Value(neutral(number, out.dtype())), &out)?;
    scatter_rows(context, op, number, [&out, &ids, &data])
}

/// Scatters into a variable: `scatter` is [`scatter_rows`] or [`scatter_nd`].
fn of_variable(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    scatter: fn(&Run<'_>, &'static str, u32, [&DeviceTensor; 3]) -> Result<()>,
) -> Result<()> {
    let variables = context.variables(&[0])?;
    scatter(context, op, number, [&variables[0], &context.input(1)?, &context.input(2)?])
}

/// Scatters into a tensor, in its memory if nothing else uses it.
fn of_tensor(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let out = copy_of_input(context, op)?;
    scatter_nd(context, op, number, [&out, &context.input(1)?, &context.input(2)?])
}

kernels! {
    types (dtype = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64], Tindices = [i32, i64])
    "ResourceScatterAdd" ScatterAdd (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 0, scatter_rows);
    "ResourceScatterSub" ScatterSub (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 1, scatter_rows);
    "ResourceScatterUpdate" ScatterUpdate (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 2, scatter_rows);
    types (dtype = [f32, f16, bf16, f64, i64], Tindices = [i32, i64])
    "ResourceScatterMul" ScatterMul (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 3, scatter_rows);
    "ResourceScatterMax" ScatterMax (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 4, scatter_rows);
    "ResourceScatterMin" ScatterMin (host_memory("resource"), variables) =
        |run, op| of_variable(run, op, 5, scatter_rows);
    types (T = [f32, f16, bf16, f64, i64], Tindices = [i32, i64])
    "ResourceScatterNdAdd" NdAdd (host_memory("ref"), variables) = |run, op| of_variable(run, op, 0, scatter_nd);
    "TensorScatterAdd" TensorAdd () = |run, op| of_tensor(run, op, 0);
    "ResourceScatterNdSub" NdSub (host_memory("ref"), variables) = |run, op| of_variable(run, op, 1, scatter_nd);
    "TensorScatterSub" TensorSub () = |run, op| of_tensor(run, op, 1);
    "ResourceScatterNdMax" NdMax (host_memory("ref"), variables) = |run, op| of_variable(run, op, 4, scatter_nd);
    "TensorScatterMax" TensorMax () = |run, op| of_tensor(run, op, 4);
    "ResourceScatterNdMin" NdMin (host_memory("ref"), variables) = |run, op| of_variable(run, op, 5, scatter_nd);
    "TensorScatterMin" TensorMin () = |run, op| of_tensor(run, op, 5);
    types (T = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64, bool], Tindices = [i32, i64])
    "ResourceScatterNdUpdate" NdUpdate (host_memory("ref"), variables) =
        |run, op| of_variable(run, op, 2, scatter_nd);
    "TensorScatterUpdate" TensorUpdate () = |run, op| of_tensor(run, op, 2);
    types (T = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64], Tindices = [i32, i64])
    "ScatterNd" ScatterNd (host_memory("shape")) = |run, op| {
        let out = output(run, 0, &host_shape(run, 2)?)?;
        fill(run, op, Operand::Value(0), &out)?;
        scatter_nd(run, op, 0, [&out, &run.input(0)?, &run.input(1)?])
    };
    types (T = [f32, f16, bf16, f64, i64], Tindices = [i32, i64], Tnumsegments = [i32, i64])
    "UnsortedSegmentSum" SegmentSum (host_memory("num_segments")) = |run, op| segment(run, op, 0);
    "UnsortedSegmentProd" SegmentProduct (host_memory("num_segments")) = |run, op| segment(run, op, 3);
    "UnsortedSegmentMax" SegmentMax (host_memory("num_segments")) = |run, op| segment(run, op, 6);
    "UnsortedSegmentMin" SegmentMin (host_memory("num_segments")) = |run, op| segment(run, op, 7);
}
