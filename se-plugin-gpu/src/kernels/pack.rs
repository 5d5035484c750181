//! `Pack` and `Unpack`.

use super::strided_copy::{Walk, strides};
use super::*;

/// Returns a walk that puts `part` at one of the places along an axis of a tensor of the shape `whole`.
fn at(whole: &[usize], axis: usize, place: usize, part: &[usize]) -> Walk {
    let mut steps = strides(whole);
    let step = steps.remove(axis);
    let mut walk = Walk::new(part, &strides(part), &steps);
    walk.from[1] = place * step as usize;
    walk
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64])
    "Pack" Pack [i64 = |op| op.attr("axis")] () = |context, op, axis| {
        let parts = inputs(context, "values")?;
        let first = parts.first().ok_or_else(|| wrong("there is nothing to pack"))?;
        if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return Err(wrong(format!("Shapes of all inputs must match: {one:?} vs. {other:?}")));
        }
        let shape = shape(first)?;
        let axis = shapes::axis(*axis, shape.len() + 1)?;
        let mut out_shape = shape.clone();
        out_shape.insert(axis, parts.len());
        let out = output(context, 0, &out_shape)?;
        for (place, part) in parts.iter().enumerate() {
            at(&out_shape, axis, place, &shape).enqueue(context, op, part.into(), &out)?;
        }
        Ok(())
    };
    types (T = [f32, f64, f16, bf16, i8, i16, u8, u16, u32, u64, bool, C64])
    "Unpack" Unpack [i64 = |op| op.attr("axis")] () = |context, op, axis| {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let axis = shapes::axis(*axis, shape.len())?;
        let count = context.output_count();
        if shape[axis] != count {
            return Err(wrong(format!(
                "Input shape axis {axis} must equal {count}, got shape {shape:?}"
            )));
        }
        let mut part = shape.clone();
        part.remove(axis);
        for place in 0..count {
            let walk = at(&shape, axis, place, &part).reversed();
            walk.enqueue(context, op, (&input).into(), &output(context, place, &part)?)?;
        }
        Ok(())
    };
}

kernels! {
    fn on_host;
    types ()
    // Packs shapes, which TensorFlow keeps on the host on every device. Without it, a function that may only run on the
    // device, such as a step of `tf.nn.ctc_loss`, is an error.
    "Pack" PackOnHost [i64 = |op| op.attr("axis")]
        (types(T = [i32]), host_memory("values", "output")) = |context, _, axis| {
        let count = context.input_count();
        let parts = (0..count).map(|index| context.host_input::<i32>(index));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let first = parts.first().ok_or_else(|| wrong("there is nothing to pack"))?;
        if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return Err(wrong(format!("Shapes of all inputs must match: {one:?} vs. {other:?}")));
        }
        let mut shape = from_host(first.shape())?;
        let axis = shapes::axis(*axis, shape.len() + 1)?;
        let inner = shapes::count(&shape[axis..]);
        shape.insert(axis, count);
        let mut out = context.host_output::<i32>(0, &shapes::to_host(&shape))?;
        if inner == 0 {
            return Ok(());
        }
        for (at, slice) in out.as_mut_slice().chunks_exact_mut(inner).enumerate() {
            let (row, part) = (at / count, &parts[at % count]);
            slice.copy_from_slice(&part.as_slice()[row * inner..][..inner]);
        }
        Ok(())
    };
}
