//! Transforms the perspective of images.

use super::*;
use core::marker::PhantomData;

struct Project<T> {
    /// How to fill places outside of the images, by the numbers of `shaders/project.comp`.
    fill: u32,
    is_bilinear: bool,
    elements: PhantomData<T>,
}

#[allow(non_camel_case_types, reason = "the attribute has this name")]
const _: () = {
    #[kernel(
        op = "ImageProjectiveTransformV3",
        types(dtype = [f32, f16, bf16, u8]),
        host_memory("output_shape", "fill_value")
    )]
    impl<dtype: Element> Kernel for Project<dtype> {
        type Platform = GpuPlatform;

        fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
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
            Ok(Self { fill, is_bilinear, elements: PhantomData })
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
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
                op: "ImageProjectiveTransformV3",
                shader: shader!("image_transform"),
                constants: &[self.fill, self.is_bilinear.into(), element_type(out.dtype())?],
                operands: &[(&images).into(), (&transforms).into(), (&out).into()],
                numbers: &numbers,
                groups: groups(out.len()),
            }
            .enqueue(context)
        }
    }
};
