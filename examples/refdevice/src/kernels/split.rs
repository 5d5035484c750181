//! `Split`: parts of a tensor along an axis.

use super::*;
use ndarray::Axis;

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "Split" Split host("split_dim") = |context, op| {
        let input = context.input(1)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(host_integer(context, 0)?, shape.len())?;
        let count = context.output_count();
        ensure!(
            count > 0 && shape[axis].is_multiple_of(count),
            wrong(format!("Number of ways to split should evenly divide the split dimension: {count}, {shape:?}"))
        );
        let size = shape[axis] / count;
        let mut out_shape = shape.clone();
        out_shape[axis] = size;
        let outs = (0..count).map(|at| output(context, at, &out_shape));
        let outs = outs.collect::<Result<Vec<_>>>()?;
        launch_lists(context, op, &[input], &outs, move |inputs, outs| {
            let mut rest = view::<T::Bits>(inputs[0], &shape)?;
            for out in outs {
                let (part, behind) = rest.split_at(Axis(axis), size);
                view_mut(out, &out_shape)?.assign(&part);
                rest = behind;
            }
            Ok(())
        })
    };
}
