//! Numbers that are rounded as quantization will do, for training that knows of it.

use super::*;

/// The attributes: how many bits, and whether the least whole number is 1.
struct Bits {
    count: i64,
    is_narrow: bool,
    /// The limits, if they are not inputs.
    limits: Option<[f32; 2]>,
}

impl Bits {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let (count, is_narrow) =
            (construction.attr("num_bits")?, construction.attr("narrow_range")?);
        ensure!(
            (2..=16).contains(&count),
            wrong(format!("num_bits must be between 2 and 16, inclusive, was: {count}"))
        );
        Ok(Self { count, is_narrow, limits: None })
    }

    /// Reads the limits too.
    fn with_limits(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let limits: [f32; 2] = [construction.attr("min")?, construction.attr("max")?];
        let [low, high] = limits;
        ensure!(low < high, wrong(format!("min has to be smaller than max, was: {low} >= {high}")));
        Ok(Self { limits: Some(limits), ..Self::new(construction)? })
    }
}

/// Computes the op, or its gradient. `per_channel` says whether each element along the last axis has its own limits.
fn fake_quant(
    context: &Run<'_>,
    op: &'static str,
    bits: &Bits,
    is_gradient: bool,
    per_channel: bool,
) -> Result<()> {
    let first = usize::from(is_gradient);
    let (input, gradients) = (context.input(first)?, context.input(0)?);
    let dims = shape(&input)?;
    ensure!(shape(&gradients)? == dims, wrong("gradient and input must be the same size"));
    let limits = match bits.limits {
        Some(_) => None,
        None => Some([context.input(first + 1)?, context.input(first + 2)?]),
    };
    let expected =
        if per_channel { dims.last().map_or(&[][..], core::slice::from_ref) } else { &[] };
    ensure!(
        !per_channel || !dims.is_empty(),
        wrong(format!("{op}: inputs must be at least one dimensional"))
    );
    for (limit, name) in limits.iter().flatten().zip(["min", "max"]) {
        let found = shape(limit)?;
        ensure!(
            found == expected,
            wrong(format!("{name} has incorrect size, expected {expected:?} was {found:?}"))
        );
    }
    let out = output(context, 0, &dims)?;
    let part = || context.temporary(DType::Float32, &shapes::to_host(&dims));
    let parts = if is_gradient && limits.is_some() { Some([part()?, part()?]) } else { None };
    let [low, high] = match (&limits, bits.limits) {
        (Some([low, high]), _) => [low.into(), high.into()],
        (None, values) => values.unwrap_or_default().map(|x| Operand::Value(x.to_bits().into())),
    };
    let [below, above] = match &parts {
        Some([below, above]) => [below.into(), above.into()],
        None => [Operand::Value(0), Operand::Value(0)],
    };
    let least = if bits.is_narrow { 1f32 } else { 0.0 };
    let most = ((1 << bits.count) - 1) as f32;
    let depth = if per_channel { dims[dims.len() - 1] } else { 1 };
    Launch {
        op,
        shader: shader!("fake_quant"),
        constants: &[
            is_gradient.into(),
            limits.is_some().into(),
            (limits.is_some() && !per_channel).into(),
        ],
        operands: &[(&input).into(), (&gradients).into(), low, high, (&out).into(), below, above],
        numbers: &[word(out.len())?, word(depth)?, least.to_bits(), most.to_bits()],
        groups: groups(out.len()),
    }
    .enqueue(context)?;
    let Some(parts) = parts else { return Ok(()) };
    let gone: Vec<usize> = (0..dims.len() - usize::from(per_channel)).collect();
    for (index, part) in parts.iter().enumerate() {
        reduce::sum(context, op, part, &gone, &output(context, 1 + index, expected)?)?;
    }
    Ok(())
}

kernels! {
    types ()
    "FakeQuantWithMinMaxArgs" Args [Bits = Bits::with_limits] () = |run, op, bits| fake_quant(run, op, bits, false, false);
    "FakeQuantWithMinMaxArgsGradient" ArgsGradient [Bits = Bits::with_limits] () =
        |run, op, bits| fake_quant(run, op, bits, true, false);
    "FakeQuantWithMinMaxVars" Vars [Bits = Bits::new] () = |run, op, bits| fake_quant(run, op, bits, false, false);
    "FakeQuantWithMinMaxVarsGradient" VarsGradient [Bits = Bits::new] () =
        |run, op, bits| fake_quant(run, op, bits, true, false);
    "FakeQuantWithMinMaxVarsPerChannel" Channels [Bits = Bits::new] () =
        |run, op, bits| fake_quant(run, op, bits, false, true);
    "FakeQuantWithMinMaxVarsPerChannelGradient" ChannelsGradient [Bits = Bits::new] () =
        |run, op, bits| fake_quant(run, op, bits, true, true);
}
