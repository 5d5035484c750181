//! `Pad` and `PadV2`.

use super::strided_copy::{Walk, fill, input_shape, strides, too_large};
use super::*;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64], Tpaddings = [i32, i64])
    "Pad" Pad (host_memory("paddings")) = |context, op| pad(context, op, 0);
    "PadV2" PadV2 (host_memory("paddings", "constant_values")) =
        |context, op| pad(context, op, bits(context, 2)?);
}

/// Returns the bytes of the only element of a host input as a number.
fn bits(context: &Run<'_>, index: usize) -> Result<u64> {
    macro_rules! of {
        ($($dtype:ident $t:ty => $bits:expr;)*) => {
            match context.input_dtype(index)? {
                $(DType::$dtype => {
                    let bits: fn($t) -> u64 = $bits;
                    Ok(bits(context.host_scalar(index)?))
                })*
                other => Err(Error::new(Code::Unimplemented, format!("no value can be of type {other}"))),
            }
        };
    }
    of! {
        Float32 f32 => |x| x.to_bits().into();
        Float64 f64 => |x| x.to_bits();
        Float16 f16 => |x| x.to_bits().into();
        Bfloat16 bf16 => |x| x.to_bits().into();
        Int8 i8 => |x| x as u64;
        Int16 i16 => |x| x as u64;
        Int32 i32 => |x| x as u64;
        Int64 i64 => |x| x as u64;
        Uint8 u8 => |x| x.into();
        Uint16 u16 => |x| x.into();
        Uint32 u32 => |x| x.into();
        Uint64 u64 => |x| x;
        Bool bool => |x| x.into();
        Complex64 C64 => |x| u64::from(x.re.to_bits()) | u64::from(x.im.to_bits()) << 32;
    }
}

/// Copies the input into an output that is padded with a value.
fn pad(context: &Run<'_>, op: &'static str, value: u64) -> Result<()> {
    let shape = input_shape(context, 0)?;
    let paddings = host_shape(context, 1)?;
    if paddings.len() != 2 * shape.len() {
        return Err(wrong(format!(
            "The first dimension of paddings must be the rank of inputs: {paddings:?}, {shape:?}"
        )));
    }
    let out_shape = shape.iter().zip(paddings.chunks(2));
    let out_shape = out_shape.map(|(size, pair)| size.checked_add(pair[0])?.checked_add(pair[1]));
    let out_shape: Shape = out_shape.collect::<Option<_>>().ok_or_else(too_large)?;
    let (input, out) = (context.input(0)?, output(context, 0, &out_shape)?);
    let target = strides(&out_shape);
    fill(context, op, Operand::Value(value), &out)?;
    let mut walk = Walk::new(&shape, &strides(&shape), &target);
    walk.from[1] = target.iter().zip(paddings.chunks(2)).map(|(t, p)| p[0] * *t as usize).sum();
    walk.enqueue(context, op, (&input).into(), &out)
}
