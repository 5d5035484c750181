//! Elements and slices by their indices.

use super::*;

/// Returns the slices of `params` along an axis at `index`. Slices outside of the axis are zeros.
fn gather(
    context: &Run<'_>,
    op: &'static str,
    [params, index]: [&DeviceTensor; 2],
    axis: i64,
    batches: i64,
) -> Result<()> {
    let (shape, index_shape) = (shape(params)?, shape(index)?);
    let axis = shapes::axis(axis, shape.len())?;
    let batch = if batches < 0 { batches + index_shape.len() as i64 } else { batches };
    let batch = usize::try_from(batch).ok().filter(|&batch| {
        batch <= axis && batch <= index_shape.len() && shape[..batch] == index_shape[..batch]
    });
    let batch = batch.ok_or_else(|| {
        wrong(format!(
            "batch_dims {batches} does not fit params of shape {shape:?}, indices of shape {index_shape:?} and axis {axis}"
        ))
    })?;
    let out_shape = [&shape[..axis], &index_shape[batch..], &shape[axis + 1..]].concat();
    let out = output(context, 0, &out_shape)?;
    word(params.len())?;
    let (outer, count) = (shapes::count(&shape[batch..axis]), shapes::count(&index_shape[batch..]));
    slices(context, op, [params, index, &out], [outer, shape[axis], count], &shape[axis + 1..])
}

/// Copies slices of the shape `inner` to `out`. `params` is `[batch, outer, size, inner]`, `index` is `[batch, count]`.
pub(super) fn slices(
    context: &Run<'_>,
    op: &'static str,
    [params, index, out]: [&DeviceTensor; 3],
    [outer, size, count]: [usize; 3],
    inner: &[usize],
) -> Result<()> {
    if params.is_empty() {
        // Each index is outside.
        return super::strided_copy::fill(context, op, Operand::Value(0), out);
    }
    Launch {
        op,
        shader: shader!("gather"),
        constants: &[bytes(out)?, element_type(index.dtype())?],
        operands: &[params.into(), index.into(), out.into()],
        numbers: &[
            word(out.len())?,
            outer as u32,
            size as u32,
            shapes::count(inner) as u32,
            count as u32,
        ],
        groups: groups(out.len()),
    }
    .enqueue(context)
}

kernels! {
    types (Tparams = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], Tindices = [i32, i64], Taxis = [i32, i64])
    "GatherV2" GatherV2 [i64 = |op| op.attr("batch_dims")] (host_memory("axis")) = |context, op, batches| {
        let (params, index) = (context.input(0)?, context.input(1)?);
        gather(context, op, [&params, &index], host_integer(context, 2)?, *batches)
    };
    types (dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool], Tindices = [i32, i64])
    // The variable does not change meanwhile.
    "ResourceGather" ResourceGather [i64 = |op| op.attr("batch_dims")]
        (host_memory("resource"), variables) = |context, op, batches| {
        let variables = context.variables(&[0])?;
        gather(context, op, [&variables[0], &context.input(1)?], *batches, *batches)
    };
    types (T = [f32, f64, f16, bf16, i64, bool], TI = [u8, i32, i64])
    "OneHot" OneHot [i64 = |op| op.attr("axis")] (host_memory("depth")) = |context, op, axis| {
        let [index, on, off] = [0, 2, 3].map(|at| context.input(at));
        let (index, on, off) = (index?, on?, off?);
        if on.len() != 1 || off.len() != 1 {
            return Err(wrong("on_value and off_value must be scalars"));
        }
        let shape = shape(&index)?;
        let axis = shapes::axis(*axis, shape.len() + 1)?;
        let [depth] = from_host(&[host_integer(context, 1)?])?[..] else {
            return Err(wrong("depth must be a scalar"));
        };
        let mut out_shape = shape.clone();
        out_shape.insert(axis, depth);
        let out = output(context, 0, &out_shape)?;
        Launch {
            op,
            shader: shader!("one_hot"),
            constants: &[bytes(&out)?, element_type(index.dtype())?],
            operands: &[(&index).into(), (&on).into(), (&off).into(), (&out).into()],
            numbers: &[word(out.len())?, depth as u32, shapes::count(&shape[axis..]) as u32],
            groups: groups(out.len()),
        }
        .enqueue(context)
    };
}
