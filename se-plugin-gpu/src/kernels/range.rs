//! Numbers with the same step.

use super::*;

/// What a range of numbers of a type consists of: the start, the step, in bits, and how many there are.
type Parts = ([u64; 2], usize);

/// Fails unless the limit is behind the start.
fn check<T: PartialOrd + core::fmt::Display>(start: T, limit: T, delta: T, zero: T) -> Result<()> {
    ensure!(delta != zero, wrong(format!("Requires delta != 0: {delta}")));
    ensure!(
        delta < zero || start <= limit,
        wrong(format!("Requires start <= limit when delta > 0: {start}/{limit}"))
    );
    ensure!(
        delta > zero || start >= limit,
        wrong(format!("Requires start >= limit when delta < 0: {start}/{limit}"))
    );
    Ok(())
}

fn of_integers(context: &Run<'_>) -> Result<Parts> {
    let [start, limit, delta] = [0, 1, 2].map(|index| host_integer(context, index));
    let (start, limit, delta) = (start?, limit?, delta?);
    check(start, limit, delta, 0)?;
    let count = start.abs_diff(limit).div_ceil(delta.unsigned_abs());
    Ok(([start as u64, delta as u64], usize::try_from(count).map_err(|_| too_many(count))?))
}

/// Reads three floats, which `round` rounds to the type.
fn of_floats(context: &Run<'_>, dtype: DType, round: fn(f32) -> f32) -> Result<Parts> {
    let scalar = |index| match dtype {
        DType::Float16 => context.host_scalar::<f16>(index).map(f32::from),
        DType::Bfloat16 => context.host_scalar::<bf16>(index).map(f32::from),
        _ => context.host_scalar::<f32>(index),
    };
    let (start, limit, delta) = (scalar(0)?, scalar(1)?, scalar(2)?);
    check(start, limit, delta, 0.0)?;
    let count = round(round(limit - start) / delta).abs().ceil();
    ensure!(count <= i64::MAX as f32, too_many(count));
    Ok(([start, delta].map(|x| x.to_bits().into()), count as usize))
}

fn of_doubles(context: &Run<'_>) -> Result<Parts> {
    let [start, limit, delta] = [0, 1, 2].map(|index| context.host_scalar::<f64>(index));
    let (start, limit, delta) = (start?, limit?, delta?);
    check(start, limit, delta, 0.0)?;
    let count = ((limit - start) / delta).abs().ceil();
    ensure!(count <= i64::MAX as f64, too_many(count));
    Ok(([start, delta].map(f64::to_bits), count as usize))
}

#[cold]
fn too_many(count: impl core::fmt::Display) -> Error {
    wrong(format!("Requires ((limit - start) / delta) to be the size of a tensor, and not {count}"))
}

fn range(context: &Run<'_>, op: &'static str) -> Result<()> {
    let dtype = context.output_dtype(0)?;
    let ([start, delta], count) = match dtype {
        DType::Float64 => of_doubles(context)?,
        DType::Float32 => of_floats(context, dtype, |x| x)?,
        DType::Float16 => of_floats(context, dtype, |x| f16::from_f32(x).into())?,
        DType::Bfloat16 => of_floats(context, dtype, |x| bf16::from_f32(x).into())?,
        _ => of_integers(context)?,
    };
    word(count)?;
    let out = output(context, 0, &[count])?;
    Launch {
        op,
        shader: variant!("range", dtype),
        constants: &[element_type(dtype)?],
        operands: &[Operand::Value(start), Operand::Value(delta), (&out).into()],
        numbers: &[count as u32],
        groups: groups(count),
    }
    .enqueue(context)
}

kernels! {
    types (Tidx = [f32, f16, bf16, f64, i64])
    "Range" Range (host_memory("start", "limit", "delta")) = |run, op| range(run, op);
}
