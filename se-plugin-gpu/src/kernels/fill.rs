//! `Fill` and `Empty`.

use super::strided_copy::fill;
use super::*;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], index_type = [i32, i64])
    "Fill" Fill (host_memory("dims")) = |context, op| {
        let value = context.input(1)?;
        if value.len() != 1 {
            return Err(wrong("value must be a scalar"));
        }
        let out = output(context, 0, &host_shape(context, 0)?)?;
        fill(context, op, (&value).into(), &out)
    };
    types (dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool])
    "Empty" Empty [bool = |op| op.attr("init")] (host_memory("shape")) = |context, op, with_zeros| {
        let out = output(context, 0, &host_shape(context, 0)?)?;
        if *with_zeros {
            fill(context, op, Operand::Value(0), &out)?;
        }
        Ok(())
    };
}
