//! Colors as red, green and blue, or as hue, saturation and value.

use super::*;

fn convert(context: &Run<'_>, op: &'static str, to_rgb: bool) -> Result<()> {
    let colors = context.input(0)?;
    let shape = shape(&colors)?;
    let channels = shape.last().copied().ok_or_else(|| wrong("input must be at least 1D"))?;
    if channels != 3 {
        let text = format!("input must have 3 channels but input only has {channels} channels.");
        return Err(Error::new(Code::FailedPrecondition, text));
    }
    let out = output(context, 0, &shape)?;
    word(out.len())?;
    let count = out.len() / channels;
    Launch {
        op,
        shader: shader!("colors"),
        constants: &[to_rgb.into(), element_type(out.dtype())?],
        operands: &[(&colors).into(), (&out).into()],
        numbers: &[count as u32],
        groups: groups(count),
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32, f16, bf16])
    "RGBToHSV" RgbToHsv () = |run, op| convert(run, op, false);
    "HSVToRGB" HsvToRgb () = |run, op| convert(run, op, true);
}
