//! `MatrixBandPart`.

use super::*;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool], Tindex = [i32, i64])
    "MatrixBandPart" MatrixBandPart (host_memory("num_lower", "num_upper")) = |context, op| {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let [.., rows, columns] = shape[..] else {
            return Err(wrong(format!("input must be at least 2-dim, received shape: {shape:?}")));
        };
        // The distance from the diagonal; negative means any distance.
        let side = |index: usize, name: &str, all: usize| match host_integer(context, index)? {
            ..0 => Ok(all as u32),
            some if some <= all as i64 => Ok(some as u32),
            some => Err(wrong(format!("{name} must be negative or at most {all}, got: {some}"))),
        };
        let (lower, upper) = (side(1, "num_lower", rows)?, side(2, "num_upper", columns)?);
        let out = output(context, 0, &shape)?;
        Launch {
            op,
            shader: shader!("band"),
            constants: &[bytes(&out)?],
            operands: &[(&input).into(), (&out).into()],
            numbers: &[word(out.len())?, rows as u32, columns as u32, lower, upper],
            groups: groups(out.len()),
        }
        .enqueue(context)
    };
}
