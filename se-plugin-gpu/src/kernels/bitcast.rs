//! `Bitcast`.

use super::*;

kernels! {
    types ()
    "Bitcast" Bitcast () = bitcast;
}

/// Returns the same bytes as elements of another type. An element that becomes several has a new axis for them.
fn bitcast(context: &Run<'_>, op: &'static str) -> Result<()> {
    let (input, to) = (context.input(0)?, context.output_dtype(0)?);
    let mut out_shape = shape(&input)?;
    let plain = || wrong("the elements are not plain bytes");
    let size = input.dtype().size().ok_or_else(plain)?;
    let new_size = to.size().ok_or_else(plain)?;
    if size > new_size {
        out_shape.push(size / new_size);
    } else if size < new_size && out_shape.pop() != Some(new_size / size) {
        return Err(wrong(format!(
            "Cannot bitcast from {} to {to} because the last dimension of the shape {:?} is not {}",
            input.dtype(),
            input.shape(),
            new_size / size
        )));
    }
    let out = output(context, 0, &out_shape)?;
    // Moves all bytes, as many at a time as shaders can move: an element of complex128 has 16.
    let part = size.min(new_size).min(8);
    let count = word(out.len().saturating_mul(new_size / part))?;
    Launch {
        op,
        shader: shader!("strided_copy"),
        constants: &[part as u32, 1, 0],
        operands: &[(&input).into(), (&out).into()],
        numbers: &[count, count, 1, 1],
        groups: groups(count as usize),
    }
    .enqueue(context)
}
