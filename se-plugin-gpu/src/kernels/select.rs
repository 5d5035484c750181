//! `Select`: one of two for each element.

use super::*;

/// Chooses one of two for each element, by a condition.
fn select(context: &Run<'_>, op: &'static str, by_row: bool) -> Result<()> {
    let [condition, a, b] = [0, 1, 2].map(|index| context.input(index));
    let (condition, a, b) = (condition?, a?, b?);
    let (mut c_shape, a_shape, b_shape) = (shape(&condition)?, shape(&a)?, shape(&b)?);
    if by_row {
        if a_shape != b_shape {
            return Err(wrong(format!("Incompatible shapes: {a_shape:?} vs. {b_shape:?}")));
        }
        let fits = match c_shape[..] {
            [] => true,
            // A vector chooses rows.
            [rows] if a_shape.len() != 1 => a_shape.first() == Some(&rows),
            _ => c_shape == a_shape,
        };
        if !fits {
            return Err(wrong(format!("Incompatible shapes: {c_shape:?} vs. {a_shape:?}")));
        }
        if !c_shape.is_empty() {
            c_shape.resize(a_shape.len(), 1);
        }
    }
    let broadcast = Broadcast::new([&c_shape, &a_shape, &b_shape])?;
    let out = output(context, 0, broadcast.shape())?;
    run(context, op, [&condition, &a, &b], &out, broadcast.axes())
}

/// Enqueues the choice between `a` and `b` along these axes.
pub(super) fn run(
    context: &Run<'_>,
    op: &'static str,
    [condition, a, b]: [&DeviceTensor; 3],
    out: &DeviceTensor,
    axes: &[Strides<3>],
) -> Result<()> {
    let mut numbers = vec![word(out.len())?];
    for axis in axes {
        // Each axis is dense, or repeated: its steps follow from the axes behind it.
        let goes_on = axis.strides.map(|stride| u32::from(stride != 0));
        numbers.extend([axis.len as u32, goes_on[0] | goes_on[1] << 1 | goes_on[2] << 2]);
    }
    Launch {
        op,
        shader: shader!("select"),
        constants: &[bytes(out)?, axes.len() as u32],
        operands: &[condition.into(), a.into(), b.into(), out.into()],
        numbers: &numbers,
        groups: groups(out.len()),
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64])
    "Select" Select () = |run, op| select(run, op, true);
    "SelectV2" SelectV2 () = |run, op| select(run, op, false);
}
