//! `Slice`, strided slices, their gradients, and assignments to them.

use super::strided_copy::{Walk, broadcast, copy_of_input, fill, input_shape, slice, strides};
use super::*;
use se_plugin::toolkit::slice::{self, Masks, Steps};

/// Writes values into a slice of `target`, repeated along axes that they do not have.
fn assign(
    context: &Run<'_>,
    op: &'static str,
    masks: Masks,
    target: &DeviceTensor,
    values: &DeviceTensor,
) -> Result<()> {
    let (whole, actual) = (shape(target)?, shape(values)?);
    let plan = slice::read(context, masks)?.plan(&whole)?;
    let walk = slice(&whole, &plan.steps).reversed();
    if actual == plan.shape {
        return walk.enqueue(context, op, values.into(), target);
    }
    if !shapes::broadcasts_to(&actual, &plan.shape) {
        return Err(wrong(format!(
            "the values have the shape {actual:?} and not {:?}",
            plan.shape
        )));
    }
    let repeated = context.temporary(values.dtype(), &shapes::to_host(&plan.shape))?;
    let source = broadcast(&actual, plan.shape.len());
    let all = Walk::new(&plan.shape, &source, &strides(&plan.shape));
    all.enqueue(context, op, values.into(), &repeated)?;
    walk.enqueue(context, op, (&repeated).into(), target)
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], Index = [i32, i64])
    "StridedSlice" StridedSliceKernel [Masks = Masks::read]
        (host_memory("begin", "end", "strides")) = |context, op, &masks| {
        let input = context.input(0)?;
        let shape = shape(&input)?;
        let plan = slice::read(context, masks)?.plan(&shape)?;
        let out = output(context, 0, &plan.shape)?;
        slice(&shape, &plan.steps).enqueue(context, op, (&input).into(), &out)
    };
    "TensorStridedSliceUpdate" TensorStridedSliceUpdate [Masks = Masks::read]
        (host_memory("begin", "end", "strides")) = |context, op, &masks| {
        assign(context, op, masks, &copy_of_input(context, op)?, &context.input(4)?)
    };
    "ResourceStridedSliceAssign" ResourceStridedSliceAssign [Masks = Masks::read] (host_memory("ref", "begin", "end", "strides"), variables) =
        |context, op, &masks| {
            let variables = context.variables(&[0])?;
            assign(context, op, masks, &variables[0], &context.input(4)?)
        };
    types (T = [f32, f64, f16, bf16, i64, C64], Index = [i32, i64])
    "StridedSliceGrad" StridedSliceGrad [Masks = Masks::read]
        (host_memory("shape", "begin", "end", "strides")) = |context, op, &masks| {
        let out_shape = host_shape(context, 0)?;
        let gradient = context.input(4)?;
        let plan = slice::read(context, masks)?.plan(&out_shape)?;
        let actual = shape(&gradient)?;
        if actual != plan.shape {
            return Err(wrong(format!("dy has the shape {actual:?} and not {:?}", plan.shape)));
        }
        let out = output(context, 0, &out_shape)?;
        fill(context, op, Operand::Value(0), &out)?;
        let walk = slice(&out_shape, &plan.steps).reversed();
        walk.enqueue(context, op, (&gradient).into(), &out)
    };
}

// TensorFlow keeps int32 on the host, and has kernels for it there.
kernels! {
    fn slices;
    types (T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool, C64], Index = [i32, i64])
    "Slice" Slice (host_memory("begin", "size")) = |context, op| {
        let shape = input_shape(context, 0)?;
        let steps = Steps::of_slice(&shape, &context.host_integers(1)?, &context.host_integers(2)?)?;
        let walk = slice(&shape, &steps);
        let sizes: Shape = steps.iter().map(|steps| steps.count).collect();
        let (input, out) = (context.input(0)?, output(context, 0, &sizes)?);
        walk.enqueue(context, op, (&input).into(), &out)
    };
}
