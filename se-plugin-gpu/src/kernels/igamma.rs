//! The gamma function and the incomplete ones, with their gradients. The numbers are those of the ops in `shaders/igamma64.comp`.

use super::elementwise::{numbers, of_one, of_two};
use super::*;

/// The most terms of a series: `MOST_TERMS` of the shader.
const MOST_TERMS: usize = 2000;

/// Computes op `number` of each two elements, which are broadcast.
fn enqueue(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    [a, b]: [&DeviceTensor; 2],
    out: &DeviceTensor,
    axes: &[Strides<2>],
) -> Result<()> {
    let groups = groups(out.len());
    let each = out.len().div_ceil((groups[0] as usize * 256).max(1));
    ensure_turns(context, op, each * (MOST_TERMS + 40))?;
    Launch {
        op,
        shader: shader!("igamma64.double"),
        constants: &[number, element_type(out.dtype())?, axes.len() as u32],
        operands: &[a.into(), b.into(), out.into()],
        numbers: &numbers(out.len(), 0, axes)?,
        groups,
    }
    .enqueue(context)
}

fn binary(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    of_two(context, |of, out, axes| enqueue(context, op, number, of, out, axes))
}

fn unary(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    of_one(context, |of, out, axes| enqueue(context, op, number, of, out, axes))
}

kernels! {
    types (T = [f32, f64])
    "Igamma" Igamma () = |run, op| binary(run, op, 0);
    "Igammac" Igammac () = |run, op| binary(run, op, 1);
    "IgammaGradA" IgammaGradA () = |run, op| binary(run, op, 2);
    "RandomGammaGrad" RandomGammaGrad () = |run, op| binary(run, op, 3);
    types (T = [f32, f16, f64])
    "Lgamma" Lgamma () = |run, op| unary(run, op, 4);
    "Digamma" Digamma () = |run, op| unary(run, op, 5);
}
