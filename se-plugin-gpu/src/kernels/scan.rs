//! Cumulative sums and products.

use super::*;

/// The elements in a turn of the loop of `shaders/scan.comp`.
const EACH: usize = 8;

/// From this many elements on, a workgroup computes a row, else a thread does.
const WIDE: usize = 1024;

fn scan(
    context: &Run<'_>,
    op: &'static str,
    is_product: bool,
    [is_exclusive, is_reverse]: [bool; 2],
) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
    let out = output(context, 0, &shape)?;
    let rows = if out.is_empty() { 0 } else { out.len() / shape[axis] };
    word(out.len())?;
    // One thread is slow for a long row; many rows may have one each. A product of floats from the middle of a row may
    // be infinite, or 0, although that of the whole row is not; for a sum this needs numbers near the largest.
    let is_whole = input.dtype() == DType::Int64;
    let may_split = !is_product || is_whole;
    let is_wide = may_split && shape[axis] >= WIDE && rows <= shape[axis];
    // Those of a group go through it twice.
    let lanes = if is_wide { 128 } else { 1 };
    ensure_turns(context, op, shape[axis].div_ceil(lanes * EACH) + 16)?;
    Launch {
        op,
        shader: variant!("scan", input.dtype()),
        constants: &[
            element_type(input.dtype())?,
            is_product.into(),
            is_exclusive.into(),
            is_reverse.into(),
            is_wide.into(),
        ],
        operands: &[(&input).into(), (&out).into()],
        numbers: &[rows as u32, shape[axis] as u32, shapes::count(&shape[axis + 1..]) as u32],
        groups: groups_of(rows, is_wide),
    }
    .enqueue(context)
}

/// Reads whether sums exclude their last element, and whether they begin at the end.
fn way(construction: &OpKernelConstruction<'_>) -> Result<[bool; 2]> {
    Ok([construction.attr("exclusive")?, construction.attr("reverse")?])
}

kernels! {
    types (T = [f32, f64, i64], Tidx = [i32, i64])
    "Cumsum" Cumsum [[bool; 2] = way] (host_memory("axis")) = |run, op, way| scan(run, op, false, *way);
    "Cumprod" Cumprod [[bool; 2] = way] (host_memory("axis")) = |run, op, way| scan(run, op, true, *way);
}
