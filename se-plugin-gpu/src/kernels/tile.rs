//! `Tile` and `BroadcastTo`.

use super::strided_copy::{Walk, broadcast, input_shape, rearrange, strides, too_large};
use super::*;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64], Tmultiples = [i32, i64])
    "Tile" Tile (host_memory("multiples")) = |context, op| {
        let (shape, multiples) = (input_shape(context, 0)?, host_shape(context, 1)?);
        if shape.len() != multiples.len() {
            return Err(wrong(format!("Expected multiples argument to be a vector of length {} but got length {}", shape.len(), multiples.len())));
        }
        let out_shape = shape.iter().zip(&multiples).map(|(size, times)| size.checked_mul(*times));
        let out_shape: Shape = out_shape.collect::<Option<_>>().ok_or_else(too_large)?;
        let (input, out) = (context.input(0)?, output(context, 0, &out_shape)?);
        // Each axis becomes two: the repetitions, and the elements.
        let mut walk = Walk::default();
        for (axis, (from, to)) in strides(&shape).into_iter().zip(strides(&out_shape)).enumerate() {
            walk.axes.push((multiples[axis], [0, to * shape[axis] as isize]));
            walk.axes.push((shape[axis], [from, to]));
        }
        walk.enqueue(context, op, (&input).into(), &out)
    };
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, C64], Tidx = [i32, i64])
    "BroadcastTo" BroadcastTo (host_memory("shape")) = |context, op| {
        let (shape, out) = (input_shape(context, 0)?, host_shape(context, 1)?);
        if !shapes::broadcasts_to(&shape, &out) {
            return Err(wrong(format!("Incompatible shapes: {shape:?} vs. {out:?}")));
        }
        rearrange(context, op, &out, &broadcast(&shape, out.len()), 0)
    };
}
