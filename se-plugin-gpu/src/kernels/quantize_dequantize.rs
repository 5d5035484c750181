//! Numbers that are rounded to whole multiples of a scale, which their range or a given one decides.

use super::*;

/// The attributes, apart from how many bits there are, which may be an input.
struct Options {
    bits: Option<i64>,
    is_signed: bool,
    is_given: bool,
    is_narrow: bool,
    rounds_up: bool,
    /// The axis along which each index has a range of its own.
    axis: Option<usize>,
}

impl Options {
    /// Reads the attributes that an op of `version` has; the gradient is without one.
    fn new(construction: &OpKernelConstruction<'_>, version: Option<u32>) -> Result<Self> {
        let axis: i64 = construction.attr("axis")?;
        ensure!(axis >= -1, wrong(format!("Axis must be at least -1. Found {axis}")));
        let mut options = Self {
            bits: None,
            is_signed: true,
            is_given: true,
            is_narrow: false,
            rounds_up: false,
            axis: usize::try_from(axis).ok(),
        };
        let Some(version) = version else { return Ok(options) };
        options.is_signed = construction.attr("signed_input")?;
        options.is_given = construction.attr("range_given")?;
        options.is_narrow = construction.attr("narrow_range")?;
        if version != 3 {
            options.bits = Some(construction.attr("num_bits")?);
            options.rounds_up = construction.attr::<String>("round_mode")? == "HALF_UP";
        }
        Ok(options)
    }

    /// Returns the least and the greatest whole number.
    fn whole(&self, bits: i64) -> Result<[f32; 2]> {
        let most = if self.is_signed { 62 } else { 63 };
        ensure!(
            bits > 0 && bits < most,
            wrong(format!(
                "num_bits is out of range: {bits} with signed_input_ {}",
                self.is_signed
            ))
        );
        Ok(if self.is_signed {
            let half = 1_i64 << (bits - 1);
            [(i64::from(self.is_narrow) - half) as f32, (half - 1) as f32]
        } else {
            [0.0, ((1_i64 << bits) - 1) as f32]
        })
    }
}

/// Computes the op, or its gradient, whose first input are the gradients of the results.
fn quantize_dequantize(
    context: &Run<'_>,
    op: &'static str,
    options: &Options,
    is_gradient: bool,
) -> Result<()> {
    let first = usize::from(is_gradient);
    let (input, gradients) = (context.input(first)?, context.input(0)?);
    let dims = shape(&input)?;
    ensure!(shape(&gradients)? == dims, wrong("gradient and input must be the same size"));
    let given = [context.input(first + 1)?, context.input(first + 2)?];
    // The elements with a range of their own, and how many neighbours have the same.
    let (depth, inner) = match options.axis {
        None => (1, 1),
        Some(axis) => {
            let depth = dims.get(axis).copied().ok_or_else(|| {
                wrong(format!("Axis should be -1 or less than the rank {}, was {axis}", dims.len()))
            })?;
            (depth, shapes::count(&dims[axis + 1..]))
        }
    };
    let of_range = if options.axis.is_some() { &[depth][..] } else { &[] };
    if options.is_given {
        // TensorFlow's kernels for the CPU also refuse those of an axis, except in V3.
        for (limit, name) in given.iter().zip(["input_min", "input_max"]) {
            let found = shape(limit)?;
            ensure!(
                found == of_range,
                wrong(format!("{name} has incorrect size, expected {of_range:?} was {found:?}"))
            );
        }
    }
    let whole = match options.bits {
        _ if is_gradient => [0.0; 2],
        Some(bits) => options.whole(bits)?,
        None => options.whole(host_integer(context, 3)?)?,
    };
    let out = output(context, 0, &dims)?;
    if is_gradient {
        for (index, limit) in given.iter().enumerate() {
            let none = output(context, 1 + index, &shape(limit)?)?;
            strided_copy::fill(context, op, Operand::Value(0), &none)?;
        }
    }
    if out.is_empty() {
        return Ok(());
    }
    let found;
    let [low, high] = if options.is_given {
        &given
    } else {
        let all: Vec<usize> = (0..dims.len()).filter(|axis| Some(*axis) != options.axis).collect();
        let part = || context.temporary(DType::Float32, &shapes::to_host(of_range));
        found = [part()?, part()?];
        for (number, part) in [reduce::MIN, reduce::MAX].into_iter().zip(&found) {
            reduce::fold(context, op, number, &input, &all, part)?;
        }
        &found
    };
    Launch {
        op,
        shader: shader!("quantize_dequantize"),
        constants: &[is_gradient.into(), options.is_given.into(), options.rounds_up.into()],
        operands: &[(&input).into(), (&gradients).into(), low.into(), high.into(), (&out).into()],
        numbers: &[
            word(out.len())?,
            word(depth)?,
            word(inner)?,
            whole[0].to_bits(),
            whole[1].to_bits(),
        ],
        groups: groups(out.len()),
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32])
    "QuantizeAndDequantizeV2" V2 [Options = |op| Options::new(op, Some(2))] () =
        |run, op, options| quantize_dequantize(run, op, options, false);
    "QuantizeAndDequantizeV3" V3 [Options = |op| Options::new(op, Some(3))] (host_memory("num_bits")) =
        |run, op, options| quantize_dequantize(run, op, options, false);
    "QuantizeAndDequantizeV4" V4 [Options = |op| Options::new(op, Some(4))] () =
        |run, op, options| quantize_dequantize(run, op, options, false);
    "QuantizeAndDequantizeV4Grad" V4Grad [Options = |op| Options::new(op, None)] () =
        |run, op, options| quantize_dequantize(run, op, options, true);
}
