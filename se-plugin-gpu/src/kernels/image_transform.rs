//! Transforms the perspective of images.

use super::*;

/// Reads how to fill places outside of the images, by the numbers of `shaders/image_transform.comp`, and whether to
/// interpolate.
fn new(construction: &OpKernelConstruction<'_>) -> Result<(u32, bool)> {
    let (interpolation, mode): (String, String) =
        (construction.attr("interpolation")?, construction.attr("fill_mode")?);
    let is_bilinear = match interpolation.as_str() {
        "NEAREST" => false,
        "BILINEAR" => true,
        other => return Err(wrong(format!("Invalid interpolation {other}"))),
    };
    let modes = ["REFLECT", "WRAP", "CONSTANT", "NEAREST"];
    let fill = modes.iter().position(|known| *known == mode);
    let fill = fill.ok_or_else(|| wrong(format!("Invalid mode {mode}")))? as u32;
    Ok((fill, is_bilinear))
}

kernels! {
    types (dtype = [f32, f16, bf16, u8])
    "ImageProjectiveTransformV3" ImageTransform [(u32, bool) = new]
        (host_memory("output_shape", "fill_value")) = |context, op, (fill_mode, is_bilinear)| {
        let (images, transforms) = (context.input(0)?, context.input(1)?);
        let [batch, rows, columns, channels] = four(&shape(&images)?, "Input images")
            .map_err(|_| wrong("Input images must have rank 4"))?;
        let each = match shape(&transforms)?[..] {
            [1, 8] => 0,
            [count, 8] if count == batch => 8,
            _ => return Err(wrong("Input transform should be num_images x 8 or 1 x 8")),
        };
        let resized = size(context, 2, "output shape")?;
        let fill: f32 = context.host_scalar(3)?;
        let out = output(context, 0, &[batch, resized[0], resized[1], channels])?;
        if out.is_empty() {
            return Ok(());
        }
        word(images.len())?;
        word(transforms.len())?;
        let sizes = [out.len(), channels, rows, columns, resized[0], resized[1], each];
        let mut numbers = sizes.into_iter().map(word).collect::<Result<Vec<_>>>()?;
        numbers.push(fill.to_bits());
        Launch {
            op,
            shader: shader!("image_transform"),
            constants: &[*fill_mode, (*is_bilinear).into(), element_type(out.dtype())?],
            operands: &[(&images).into(), (&transforms).into(), (&out).into()],
            numbers: &numbers,
            groups: groups(out.len()),
        }
        .enqueue(context)
    };
}
