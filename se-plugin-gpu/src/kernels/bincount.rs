//! Counts of numbers, or sums of their weights.

use super::*;

/// The most numbers that a thread goes through: the driver for the CPU ends longer loops.
const PART: usize = 1 << 13;

/// The most partial sums.
const MOST_SUMS: usize = 1 << 22;

/// Counts the numbers of each row of `input` that are below `bins`, or adds the weights at their places, into the rows of the output.
fn count(
    context: &Run<'_>,
    op: &'static str,
    [input, weights]: [&DeviceTensor; 2],
    bins: i64,
    is_binary: bool,
) -> Result<()> {
    let shape = shape(input)?;
    let bins =
        usize::try_from(bins).map_err(|_| wrong(format!("size ({bins}) must be non-negative")))?;
    ensure!(
        weights.is_empty() || weights.shape() == input.shape(),
        wrong(format!(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal to 1. \
             Received {:?}",
            weights.shape()
        ))
    );
    let (rows, len) = match shape[..] {
        [rows, len] if op == "DenseBincount" => (rows, len),
        _ => (1, input.len()),
    };
    let out_shape: &[usize] =
        if shape.len() == 2 && op == "DenseBincount" { &[rows, bins] } else { &[bins] };
    let out = output(context, 0, out_shape)?;
    if out.is_empty() || input.is_empty() {
        return strided_copy::fill(context, op, Operand::Value(0), &out);
    }
    word(input.len())?;
    word(out.len())?;
    let most = (MOST_SUMS / out.len()).clamp(1, MOST_GROUPS);
    let part = len.div_ceil(len.div_ceil(PART).min(most));
    let (parts, tiles) = (len.div_ceil(part), bins.div_ceil(256));
    let tasks = word(rows * tiles)?;
    // A workgroup takes several tiles if there are more than groups.
    let turns = 1 + part + part.div_ceil(256);
    ensure_turns(context, op, (tasks as usize).div_ceil(MOST_GROUPS) * turns)?;
    ensure_work(op, rows * tiles * 256, len)?;
    let sums = match parts {
        1 => out.clone(),
        _ => context.temporary(out.dtype(), &[parts as i64, rows as i64, bins as i64])?,
    };
    Launch {
        op,
        shader: variant!("bincount", out.dtype()),
        constants: &[
            element_type(out.dtype())?,
            element_type(input.dtype())?,
            (!weights.is_empty() && !is_binary).into(),
            is_binary.into(),
        ],
        operands: &[input.into(), weights.into(), (&sums).into()],
        numbers: &[tasks, tiles as u32, bins as u32, len as u32, part as u32],
        groups: [(tasks as usize).min(MOST_GROUPS) as u32, parts as u32, 1],
    }
    .enqueue(context)?;
    let number = if is_binary { reduce::ANY } else { reduce::SUM };
    if parts > 1 { reduce::fold(context, op, number, &sums, &[0], &out) } else { Ok(()) }
}

kernels! {
    types (T = [f32, f64, i32, i64], Tidx = [i32, i64])
    "DenseBincount" DenseBincount [bool = |op| op.attr("binary_output")] (host_memory("size")) = |run, op, is_binary| {
        ensure!(run.input(0)?.shape().len() <= 2, wrong("Shape must be at most rank 2"));
        count(run, op, [&run.input(0)?, &run.input(2)?], host_integer(run, 1)?, *is_binary)
    };
    types (T = [f32, f64, i32, i64])
    "Bincount" Bincount (host_memory("size")) =
        |run, op| count(run, op, [&run.input(0)?, &run.input(2)?], host_integer(run, 1)?, false);
}
