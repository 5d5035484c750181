//! `ConcatV2`: tensors side by side along an axis.

use super::*;
use ndarray::{Axis, Slice};

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "ConcatV2" ConcatV2 index(Tidx) host("axis") = |context, op| {
        let parts = inputs(context, "values")?;
        let axis = host_integer(context, parts.len())?;
        let part_shapes = parts.iter().map(shape).collect::<Result<Vec<_>>>()?;
        let first = part_shapes.first().ok_or_else(|| wrong("there is nothing to concatenate"))?;
        let axis = shapes::axis(axis, first.len())?;
        let mut out_shape = first.clone();
        for part_shape in &part_shapes[1..] {
            let mut expected = first.clone();
            if part_shape.len() == first.len() {
                out_shape[axis] += part_shape[axis];
                expected[axis] = part_shape[axis];
            }
            ensure!(
                *part_shape == expected,
                wrong(format!("ConcatOp : Dimension {axis} in both shapes must be equal: {first:?} vs. {part_shape:?}"))
            );
        }
        let out = output(context, 0, &out_shape)?;
        launch_lists(context, op, &parts, &[out], move |parts, mut outs| {
            let mut out = view_mut::<T::Bits>(outs[0], &out_shape)?;
            let mut start = 0;
            for (part, shape) in parts.into_iter().zip(&part_shapes) {
                let end = start + shape[axis];
                out.slice_axis_mut(Axis(axis), Slice::from(start..end)).assign(&view(part, shape)?);
                start = end;
            }
            Ok(())
        })
    };
}
