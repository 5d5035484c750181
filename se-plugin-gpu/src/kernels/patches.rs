//! Copies the elements of windows over images next to each other.

use super::strided_copy::too_large;
use super::window::Geometry;
use super::*;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "ExtractImagePatches" ExtractImagePatches [Geometry = Geometry::of_patches] () = |context, op, geometry| {
        let images = context.input(0)?;
        let plan = geometry.pools(&shape(&images)?)?;
        let elements = plan.size().checked_mul(plan.results);
        let mut out_shape = plan.shape();
        out_shape[3] = elements.ok_or_else(too_large)?;
        let out = output(context, 0, &out_shape)?;
        if out.is_empty() {
            return Ok(());
        }
        word(images.len())?;
        if images.is_empty() {
            return super::strided_copy::fill(context, op, Operand::Value(0), &out);
        }
        Launch {
            op,
            shader: shader!("patches"),
            constants: &[bytes(&out)?],
            operands: &[(&images).into(), (&out).into()],
            numbers: &plan.numbers(out.len())?,
            groups: groups(out.len()),
        }
        .enqueue(context)
    };
}
