//! Sums of several tensors: `shaders/add_n.comp`.

use super::*;
use std::fmt;

/// The most tensors in a launch.
const MOST: usize = 12;

/// Fails with `INVALID_ARGUMENT` if two inputs have different shapes.
pub(super) fn check<T: fmt::Debug + PartialEq>(op: &str, one: &[T], other: &[T]) -> Result<()> {
    ensure!(
        one == other,
        wrong(format!(
            "Inputs to operation {op} must have the same size and shape: {one:?} != {other:?}"
        ))
    );
    Ok(())
}

/// Enqueues the sum of at most [`MOST`] tensors of one shape.
fn add(
    context: &Run<'_>,
    op: &'static str,
    parts: &[&DeviceTensor],
    out: &DeviceTensor,
) -> Result<()> {
    // Complex numbers are two floats.
    let (dtype, len) = match out.dtype() {
        DType::Complex64 => (DType::Float32, 2 * out.len()),
        other => (other, out.len()),
    };
    word(len)?;
    let mut operands = vec![Operand::Value(0); MOST + 1];
    for (operand, tensor) in operands.iter_mut().zip([out].iter().chain(parts)) {
        *operand = Operand::from(*tensor);
    }
    let is_float = is_float(dtype);
    let is_wide = is_float
        && len.is_multiple_of(4)
        && operands[..=parts.len()].iter().all(|operand| operand.is_multiple_of(16));
    let count = len / if is_wide { 4 } else { 1 };
    Launch {
        op,
        shader: variant!("add_n", dtype),
        constants: &[element_type(dtype)?, parts.len() as u32, is_wide.into()],
        operands: &operands,
        numbers: &[count as u32],
        groups: groups(count),
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64, C64])
    "AddN" AddN () = |run, op| {
        let parts = inputs(run, "inputs")?;
        let [first, rest @ ..] = &parts[..] else { return Err(wrong("there is nothing to add")) };
        rest.iter().try_for_each(|other| check(op, first.shape(), other.shape()))?;
        if rest.is_empty() {
            return run.set_output(0, first);
        }
        let out = run.output(0, first.shape())?;
        let all: Vec<_> = parts.iter().collect();
        let (now, later) = all.split_at(all.len().min(MOST));
        add(run, op, now, &out)?;
        later.chunks(MOST - 1).try_for_each(|more| add(run, op, &[&[&out], more].concat(), &out))
    };
}
