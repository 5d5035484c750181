//! Ops on complex numbers, elementwise. Their numbers are those in `shaders/complex.comp`.

use super::*;

/// Enqueues op `number` of each two elements of the inputs.
fn run(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    [a, b]: [&DeviceTensor; 2],
    out: &DeviceTensor,
    axes: &[Strides<2>],
) -> Result<()> {
    // The shader has an index for each of the two parts.
    [a, b, out].iter().try_for_each(|tensor| word(2 * tensor.len()).map(drop))?;
    let real = |dtype| element_type(if dtype == DType::Complex64 { DType::Float32 } else { dtype });
    Launch {
        op,
        shader: shader!("complex"),
        constants: &[number, real(a.dtype())?, real(out.dtype())?, axes.len() as u32],
        operands: &[a.into(), b.into(), out.into()],
        numbers: &elementwise::numbers(out.len(), 0, axes)?,
        groups: groups(out.len()),
    }
    .enqueue(context)
}

fn binary(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    elementwise::of_two(context, |of, out, axes| run(context, op, number, of, out, axes))
}

fn unary(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    elementwise::of_one(context, |of, out, axes| run(context, op, number, of, out, axes))
}

kernels! {
    types (T = [C64])
    "AddV2" Add () = |run, op| binary(run, op, 0);
    "Sub" Sub () = |run, op| binary(run, op, 1);
    "Mul" Mul () = |run, op| binary(run, op, 2);
    "RealDiv" RealDiv () = |run, op| binary(run, op, 3);
    "DivNoNan" DivNoNan () = |run, op| binary(run, op, 4);
    "Neg" Neg () = |run, op| unary(run, op, 10);
    "Conj" Conj () = |run, op| unary(run, op, 11);
    "Square" Square () = |run, op| unary(run, op, 12);
    "Reciprocal" Reciprocal () = |run, op| unary(run, op, 13);
    "Sign" Sign () = |run, op| unary(run, op, 14);
    "Exp" Exp () = |run, op| unary(run, op, 15);
}

kernels! {
    fn parts;
    types (SrcT = [f32, f16, bf16, i8, i32, i64, u8, bool], DstT = [C64])
    "Cast" Widen () = |run, op| unary(run, op, 20);
    types (SrcT = [C64], DstT = [f32])
    "Cast" Narrow () = |run, op| unary(run, op, 30);
    types (T = [f32], Tout = [C64])
    "Complex" Complex () = |run, op| binary(run, op, 21);
    types (T = [C64], Tout = [f32])
    "Real" Real () = |run, op| unary(run, op, 30);
    "Imag" Imag () = |run, op| unary(run, op, 31);
    "ComplexAbs" ComplexAbs () = |run, op| unary(run, op, 32);
    "Angle" Angle () = |run, op| unary(run, op, 33);
}
