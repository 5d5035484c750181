//! Sorts elements.

use super::*;

/// The comparisons in a turn of the loop of `shaders/topk.comp`.
const EACH: usize = 16;

/// Finds the greatest elements of each row, and their places. They are always sorted: callers that need no order accept any.
fn top(context: &Run<'_>, op: &'static str) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let k = match context.input_dtype(1)? {
        DType::Int16 => context.host_scalar::<i16>(1)?.into(),
        _ => host_integer(context, 1)?,
    };
    let k = usize::try_from(k).map_err(|_| wrong(format!("Need k >= 0, got {k}")))?;
    let Some((&size, outer)) = shape.split_last() else {
        return Err(wrong(format!("input must be >= 1-D, got shape {shape:?}")));
    };
    ensure!(
        k <= size,
        wrong(format!("input must have at least k columns. Had {size}, needed {k}"))
    );
    let out_shape = [outer, &[k]].concat();
    let (values, places) = (output(context, 0, &out_shape)?, output(context, 1, &out_shape)?);
    if values.is_empty() {
        return Ok(());
    }
    word(input.len())?;
    let (rows, blocks) = (shapes::count(outer), size.div_ceil(256));
    let units = word(rows.saturating_mul(blocks))?;
    ensure_turns(context, op, size.div_ceil(EACH) + 2 * blocks)?;
    Launch {
        op,
        shader: variant!("topk", input.dtype()),
        constants: &[element_type(input.dtype())?, bytes(&places)?],
        operands: &[(&input).into(), (&values).into(), (&places).into()],
        numbers: &[rows as u32, size as u32, blocks as u32, k as u32],
        groups: [(units as usize).min(MOST_GROUPS) as u32, 1, 1],
    }
    .enqueue(context)
}

kernels! {
    // The types of `k` and of the places are attributes since 2.13.
    types (T = [f32, f16, bf16, f64, i8, i16, i32, i64, u8, u16, u32])
    "TopKV2" TopKV2 (host_memory("k")) = top;
}
