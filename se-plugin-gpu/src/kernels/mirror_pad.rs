//! Extends tensors beyond their ends: mirrored there, or from the other end.

use super::strided_copy::too_large;
use super::*;

/// How a tensor is extended. The numbers are those of `shaders/mirror_pad.comp`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Symmetric = 0,
    Reflect = 1,
    Roll = 2,
}

impl Kind {
    /// Reads the attribute of the ops that mirror.
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let mode: String = construction.attr("mode")?;
        match mode.as_str() {
            "SYMMETRIC" => Ok(Self::Symmetric),
            "REFLECT" => Ok(Self::Reflect),
            _ => Err(wrong("mode must be either REFLECT or SYMMETRIC.")),
        }
    }

    /// Returns the padded and mirrored axes; `size` is that of the tensor, or with `is_gradient` of the result.
    fn axes(self, context: &Run<'_>, is_gradient: bool) -> Result<Vec<Axis>> {
        let (shape, paddings) = (shape(&context.input(0)?)?, context.host_integers(1)?);
        if shape.len() > MOST_MIRRORED {
            let text = format!("inputs rank not in [0,{MOST_MIRRORED}]: {}", shape.len());
            return Err(Error::new(Code::Unimplemented, text));
        }
        if paddings.len() != 2 * shape.len() {
            return Err(wrong(format!(
                "The first dimension of paddings must be the rank of inputs: {paddings:?}, {shape:?}"
            )));
        }
        let paddings = from_host(&paddings)
            .map_err(|_| wrong(format!("paddings must be non-negative: {paddings:?}")))?;
        let axes = shape.iter().zip(paddings.chunks(2)).map(|(&found, pair)| {
            let (before, both) = (pair[0], pair[0].checked_add(pair[1]).ok_or_else(too_large)?);
            // If the size is not known, it is too small.
            let size = if is_gradient { found.checked_sub(both) } else { Some(found) };
            let fits = |size: &usize| match self {
                Self::Reflect => before.max(pair[1]) < *size,
                _ => before.max(pair[1]) <= *size,
            };
            let size = size.filter(fits).ok_or_else(|| {
                let than = if self == Self::Reflect { "less than" } else { "no greater than" };
                wrong(format!(
                    "paddings must be {than} the dimension size: {pair:?} for an axis of {found}"
                ))
            })?;
            let padded = size.checked_add(both).ok_or_else(too_large)?;
            Ok(Axis { padded, size, before })
        });
        axes.collect()
    }
}

/// The most axes of a mirrored tensor, as in TensorFlow.
const MOST_MIRRORED: usize = 5;

/// The size of the result along an axis, that of the tensor, and how many elements of the result are before the tensor.
#[derive(Clone, Copy)]
struct Axis {
    padded: usize,
    size: usize,
    before: usize,
}

impl Axis {
    fn is_plain(self) -> bool {
        self.padded == self.size && self.before == 0
    }
}

/// Merges neighbours that stay unchanged.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::new();
    for axis in axes {
        match merged.last_mut() {
            Some(last) if last.is_plain() && axis.is_plain() => {
                last.padded *= axis.padded;
                last.size *= axis.size;
            }
            _ => merged.push(*axis),
        }
    }
    merged
}

/// Enqueues the shader.
fn enqueue(
    context: &Run<'_>,
    op: &'static str,
    kind: Kind,
    axes: &[Axis],
    is_gradient: bool,
) -> Result<()> {
    let input = context.input(0)?;
    if axes.iter().all(|axis| axis.is_plain()) {
        return context.set_output(0, &input);
    }
    let sizes = axes.iter().map(|axis| if is_gradient { axis.size } else { axis.padded });
    let out = output(context, 0, &sizes.collect::<Shape>())?;
    if out.is_empty() {
        return Ok(());
    }
    let axes = merged(axes);
    // An element of a gradient is the sum of the result's elements that are it, or its mirror image at an end.
    let padded = axes.iter().filter(|axis| axis.padded != axis.size).count();
    let ways = if is_gradient { 3_u32.pow(padded as u32) } else { 0 };
    word(input.len())?;
    let mut numbers = vec![word(out.len())?];
    for axis in &axes {
        numbers.extend([word(axis.padded)?, word(axis.size)?, word(axis.before)?]);
    }
    let type_of_sums = if is_gradient { element_type(out.dtype())? } else { 0 };
    Launch {
        op,
        shader: shader!("mirror_pad"),
        constants: &[kind as u32, axes.len() as u32, bytes(&out)?, type_of_sums, ways],
        operands: &[(&input).into(), (&out).into()],
        numbers: &numbers,
        groups: groups(out.len()),
    }
    .enqueue(context)
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "MirrorPad" MirrorPad [Kind = Kind::new] (host_memory("paddings")) = |context, op, kind| {
        enqueue(context, op, *kind, &kind.axes(context, false)?, false)
    };
    types (T = [f32, f16, bf16])
    "MirrorPadGrad" MirrorPadGrad [Kind = Kind::new] (host_memory("paddings")) = |context, op, kind| {
        enqueue(context, op, *kind, &kind.axes(context, true)?, true)
    };
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "Roll" Roll (host_memory("shift", "axis")) = |context, op| {
        let shape = shape(&context.input(0)?)?;
        let (shifts, axes) = (context.host_integers(1)?, context.host_integers(2)?);
        if shape.is_empty() {
            return Err(wrong("input must be 1-D or higher"));
        }
        if shifts.len() != axes.len() {
            return Err(wrong(format!("shift and axis must have the same size: {shifts:?}, {axes:?}")));
        }
        let mut rolled: Vec<_> =
            shape.iter().map(|&size| Axis { padded: size, size, before: 0 }).collect();
        for (shift, axis) in shifts.into_iter().zip(axes) {
            let one = &mut rolled[shapes::axis(axis, shape.len())?];
            // Shifts along the same axis add up.
            let size = one.size.max(1) as i64;
            one.before = ((one.before as i64 + shift.rem_euclid(size)) % size) as usize;
        }
        enqueue(context, op, Kind::Roll, &rolled, false)
    };
}
