//! `Transpose` and `ReverseV2`.

use super::strided_copy::{input_shape, rearrange, strides};
use super::*;

/// Returns all axes in this order; a negative axis counts from the end. Checks that it is a permutation.
fn permutation(order: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = order.iter().map(|&axis| shapes::axis(axis, rank)).collect::<Result<Vec<_>>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(wrong(format!("{order:?} is not a permutation of {rank} axes")));
    }
    Ok(axes)
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64], Tperm = [i32, i64])
    "Transpose" Transpose (host_memory("perm")) = |context, op| {
        let shape = input_shape(context, 0)?;
        let order = permutation(&context.host_integers(1)?, shape.len())?;
        let dense = strides(&shape);
        let out: Shape = order.iter().map(|&axis| shape[axis]).collect();
        let source: Vec<_> = order.iter().map(|&axis| dense[axis]).collect();
        rearrange(context, op, &out, &source, 0)
    };
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64], Tidx = [i32, i64])
    "ReverseV2" ReverseV2 (host_memory("axis")) = |context, op| {
        let shape = input_shape(context, 0)?;
        let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
        let mut source = strides(&shape);
        let mut from = 0;
        for axis in axes {
            from += shape[axis].saturating_sub(1) * source[axis] as usize;
            source[axis] = -source[axis];
        }
        rearrange(context, op, &shape, &source, from)
    };
}
