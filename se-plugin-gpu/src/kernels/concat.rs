//! `ConcatV2`.

use super::strided_copy::{Walk, strides};
use super::*;

// TensorFlow keeps int32 on the host, and has kernels for it there.
kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], Tidx = [i32, i64])
    "ConcatV2" ConcatV2 (host_memory("axis")) = |context, op| {
        let parts = inputs(context, "values")?;
        let axis = host_integer(context, parts.len())?;
        let sizes = parts.iter().map(shape).collect::<Result<Vec<_>>>()?;
        let first = sizes.first().ok_or_else(|| wrong("there is nothing to concatenate"))?;
        let axis = shapes::axis(axis, first.len())?;
        let mut out_shape = first.clone();
        for size in &sizes[1..] {
            let mut others = size.clone();
            if others.len() == first.len() {
                out_shape[axis] += others[axis];
                others[axis] = first[axis];
            }
            if others != *first {
                return Err(wrong(format!("ConcatOp : Dimension {axis} in both shapes must be equal: {first:?} vs. {size:?}")));
            }
        }
        let out = output(context, 0, &out_shape)?;
        let target = strides(&out_shape);
        let mut start = 0;
        for (part, size) in parts.iter().zip(&sizes) {
            let mut walk = Walk::new(size, &strides(size), &target);
            walk.from[1] = start * target[axis] as usize;
            start += size[axis];
            walk.enqueue(context, op, part.into(), &out)?;
        }
        Ok(())
    };
}
