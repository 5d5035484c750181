//! Inverses of matrices.

use super::*;

/// Inverts the matrices in the last two axes, or what they are transposed.
fn inverse(context: &Run<'_>, op: &'static str, is_transposed: bool) -> Result<()> {
    let input = context.input(0)?;
    let dims = shape(&input)?;
    let [outer @ .., rows, columns] = &dims[..] else {
        return Err(wrong(format!(
            "Input tensor 0 must have rank >= 2, got shape {:?}",
            input.shape()
        )));
    };
    ensure!(
        rows == columns,
        wrong(format!("Input matrices must be squares, got {rows} != {columns}"))
    );
    let out = output(context, 0, &dims)?;
    if out.is_empty() {
        return Ok(());
    }
    let (count, size) = (shapes::count(outer), *rows);
    word(2 * out.len())?;
    let each = (2 * size * size).div_ceil(256);
    ensure_turns(context, op, (size + 2) * (each + 16))?;
    let work = context.temporary(DType::Float32, &[2 * out.len() as i64])?;
    Launch {
        op,
        shader: shader!("inverse"),
        constants: &[is_transposed.into()],
        operands: &[(&input).into(), (&work).into(), (&out).into()],
        numbers: &[count as u32, size as u32],
        groups: [count.min(MOST_GROUPS) as u32, 1, 1],
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32])
    "MatrixInverse" MatrixInverse [bool = |op| op.attr("adjoint")] () = |run, op, adjoint| inverse(run, op, *adjoint);
}
