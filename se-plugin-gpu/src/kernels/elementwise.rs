//! Ops that do the same for each element. Their numbers are those in `shaders/elementwise.glsl`.

use super::*;

/// The number of `Add`.
pub(super) const ADD: u32 = 0;

/// The number of `Mul`.
pub(super) const MUL: u32 = 2;

/// The number of `Cast`.
pub(crate) const CAST: u32 = 40;

/// The ops on floats that are under `LONG` in `shaders/elementwise.glsl`.
const LONG: &[u32] = &[11, 14, 59, 60, 61, 62, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83];

/// Returns whether an op on floats is in the shaders for long ones.
pub(super) fn is_long(number: u32) -> bool {
    LONG.contains(&number)
}

/// Returns the shader of an op for elements of this type.
fn shader_of(number: u32, dtype: DType) -> &'static Shader {
    match dtype {
        DType::Float64 if is_long(number) => shader!("elementwise.long.double"),
        dtype if is_float(dtype) && is_long(number) => shader!("elementwise.long"),
        dtype => variant!("elementwise", dtype),
    }
}

/// Computes op `number` of each two elements of the inputs, which are broadcast, in the memory of one that nothing else
/// uses. `alpha` is the op's attribute, or 0.
fn binary(context: &Run<'_>, op: &'static str, number: u32, alpha: f32) -> Result<()> {
    let broadcast = Broadcast::new([&shape(&context.input(0)?)?, &shape(&context.input(1)?)?])?;
    let out = forward_one_of_two(context, &broadcast)?;
    let input = |index| match out.1 {
        Some(forwarded) if forwarded == index => Ok(out.0.clone()),
        _ => context.input(index),
    };
    let (a, b) = (input(0)?, input(1)?);
    run(context, op, [number, alpha.to_bits()], [&a, &b], &out.0, broadcast.axes())
}

/// Computes op `number` of each element of one input, in its memory if nothing else uses it.
fn unary(context: &Run<'_>, op: &'static str, number: u32, alpha: f32) -> Result<()> {
    // The input is not held here, which would count as a use.
    let shape = context.input(0)?.shape().to_vec();
    let out = match context.input_dtype(0)? == context.output_dtype(0)? {
        true => context.forward_or_output(&[0], 0, &shape)?,
        false => (context.output(0, &shape)?, None),
    };
    let (out, forwarded) = out;
    let input = if forwarded.is_some() { out.clone() } else { context.input(0)? };
    let axes = [Strides { len: input.len(), strides: [1, 1] }];
    run(context, op, [number, alpha.to_bits()], [&input, &input], &out, &axes)
}

/// Computes an output from the elements of two inputs, which are broadcast, by `then`.
pub(super) fn of_two(
    context: &Run<'_>,
    then: impl FnOnce([&DeviceTensor; 2], &DeviceTensor, &[Strides<2>]) -> Result<()>,
) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let broadcast = Broadcast::new([&shape(&a)?, &shape(&b)?])?;
    let out = output(context, 0, broadcast.shape())?;
    then([&a, &b], &out, broadcast.axes())
}

/// Computes an output from each element of one input, which is both operands, by `then`.
pub(super) fn of_one(
    context: &Run<'_>,
    then: impl FnOnce([&DeviceTensor; 2], &DeviceTensor, &[Strides<2>]) -> Result<()>,
) -> Result<()> {
    let input = context.input(0)?;
    let out = output(context, 0, &shape(&input)?)?;
    then([&input; 2], &out, &[Strides { len: input.len(), strides: [1, 1] }])
}

/// Computes op `number` of the elements of two tensors of one shape, in the memory of the first.
pub(super) fn in_place(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    target: &DeviceTensor,
    other: &DeviceTensor,
) -> Result<()> {
    let axes = [Strides { len: target.len(), strides: [1, 1] }];
    run(context, op, [number, 0], [target, other], target, &axes)
}

pub(super) fn run(
    context: &Run<'_>,
    op: &'static str,
    [number, alpha]: [u32; 2],
    [a, b]: [&DeviceTensor; 2],
    out: &DeviceTensor,
    axes: &[Strides<2>],
) -> Result<()> {
    let (types, operands) = ([a.dtype(), out.dtype()], [a.into(), b.into(), out.into()]);
    let launch = |launch: &Launch<'_>| launch.enqueue(context);
    with(op, [number, alpha], types, out.len(), axes, &operands, launch)
}

/// Returns the numbers of `shaders/broadcast.glsl`.
pub(super) fn numbers(len: usize, alpha: u32, axes: &[Strides<2>]) -> Result<Vec<u32>> {
    let mut numbers = vec![word(len)?, alpha];
    for axis in axes {
        numbers.extend([axis.len as u32, axis.strides[0] as u32, axis.strides[1] as u32]);
    }
    Ok(numbers)
}

/// Passes the launch for `len` results to `then`, and returns what that returns.
pub(super) fn with<R>(
    op: &'static str,
    [number, alpha]: [u32; 2],
    [input, out]: [DType; 2],
    len: usize,
    axes: &[Strides<2>],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    let numbers = numbers(len, alpha, axes)?;
    let (from, to) = (element_type(input)?, element_type(out)?);
    // Conversions to or from a float are computed with floats, and those of doubles with doubles.
    let is_of_out = is_float(out) && input != DType::Float64 || out == DType::Float64;
    let shader = shader_of(number, if is_of_out { out } else { input });
    let is_wide = is_float(input) && is_float(out) && is_wide(len, axes, operands);
    then(&Launch {
        op,
        shader,
        constants: &[number, from, to, axes.len() as u32, is_wide.into()],
        operands,
        numbers: &numbers,
        groups: groups(if is_wide { len / 4 } else { len }),
    })
}

/// Returns whether four results can be computed at once: of elements that are neighbours along the last axis, and aligned.
pub(super) fn is_wide<const N: usize>(
    len: usize,
    axes: &[Strides<N>],
    operands: &[Operand<'_>],
) -> bool {
    let Some((last, outer)) = axes.split_last() else { return false };
    let is_whole = |stride: &usize| stride.is_multiple_of(4);
    len.is_multiple_of(4)
        && (outer.is_empty() || last.len.is_multiple_of(4))
        && last.strides.iter().all(|stride| *stride <= 1)
        && outer.iter().all(|axis| axis.strides.iter().all(is_whole))
        && operands.iter().all(|operand| operand.is_multiple_of(16))
}

/// Defines kernels with the numbers of their ops, a line each. Those that can be fused are also in a table, with other ops before them.
macro_rules! elementwise {
    (fn $list:ident; $(types $types:tt $($op:literal $name:ident = $body:ident $number:literal;)*)*) => {
        kernels! {fn $list; $(
            types (T = $types) $($op $name () = |run, op| $body(run, op, $number, 0.0);)*
        )*}
    };
    (fn $list:ident; $(#[$doc:meta])* $table:ident: $($others:literal = $other_body:ident $other_number:literal;)*
     $(types $types:tt $($op:literal $name:ident = $body:ident $number:literal;)*)*) => {
        elementwise! {fn $list; $(types $types $($op $name = $body $number;)*)*}

        $(#[$doc])*
        pub(crate) const $table: &[Fusible] = &[
            $(($others, $other_number, operands!($other_body)),)*
            $($(($op, $number, operands!($body)),)*)*
        ];
    };
}

/// An op that can be fused: its name, its number, and how many inputs it has.
type Fusible = (&'static str, u32, usize);

macro_rules! operands {
    (unary) => {
        1
    };
    (binary) => {
        2
    };
}

elementwise! {
    fn kernels;
    /// The ops whose inputs and result have the type `T`, a float.
    FUSIBLE:
    "LeakyRelu" = unary 70;
    "LeakyReluGrad" = binary 32;

    types [f32, f16, bf16, f64]
    "Div" Div = binary 3;
    "RealDiv" RealDiv = binary 3;
    "FloorDiv" FloorDiv = binary 7;
    "FloorMod" FloorMod = binary 8;
    "DivNoNan" DivNoNan = binary 9;
    "MulNoNan" MulNoNan = binary 10;
    "Pow" Pow = binary 11;
    "Xlogy" Xlogy = binary 12;
    "Xdivy" Xdivy = binary 13;
    "Atan2" Atan2 = binary 14;
    "ReluGrad" ReluGrad = binary 21;
    "Relu6Grad" Relu6Grad = binary 22;
    "EluGrad" EluGrad = binary 23;
    "SeluGrad" SeluGrad = binary 24;
    "SoftplusGrad" SoftplusGrad = binary 25;
    "SoftsignGrad" SoftsignGrad = binary 26;
    "SigmoidGrad" SigmoidGrad = binary 27;
    "TanhGrad" TanhGrad = binary 28;
    "SqrtGrad" SqrtGrad = binary 29;
    "RsqrtGrad" RsqrtGrad = binary 30;
    "ReciprocalGrad" ReciprocalGrad = binary 31;
    "InvGrad" InvGrad = binary 31;
    "Relu" Relu = unary 45;
    "Relu6" Relu6 = unary 46;
    "Elu" Elu = unary 47;
    "Selu" Selu = unary 48;
    "Softplus" Softplus = unary 49;
    "Softsign" Softsign = unary 50;
    "Sigmoid" Sigmoid = unary 51;
    "Tanh" Tanh = unary 52;
    "Sqrt" Sqrt = unary 53;
    "Rsqrt" Rsqrt = unary 54;
    "Exp" Exp = unary 55;
    "Expm1" Expm1 = unary 56;
    "Log" Log = unary 57;
    "Log1p" Log1p = unary 58;
    "Sin" Sin = unary 59;
    "Cos" Cos = unary 60;
    "Erf" Erf = unary 61;
    "Erfc" Erfc = unary 62;
    "Floor" Floor = unary 63;
    "Ceil" Ceil = unary 64;
    "Round" Round = unary 65;
    "Rint" Rint = unary 65;
    "Reciprocal" Reciprocal = unary 66;
    "Inv" Inv = unary 66;
    "Tan" Tan = unary 74;
    "Asin" Asin = unary 75;
    "Acos" Acos = unary 76;
    "Atan" Atan = unary 77;
    "Sinh" Sinh = unary 78;
    "Cosh" Cosh = unary 79;
    "Asinh" Asinh = unary 80;
    "Acosh" Acosh = unary 81;
    "Atanh" Atanh = unary 82;
    "Erfinv" Erfinv = unary 83;

    // TensorFlow keeps int32 on the host, and has kernels for it there.
    types [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64]
    "AddV2" AddV2 = binary 0;
    "Sub" Sub = binary 1;
    "Mul" Mul = binary 2;

    types [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32]
    "Maximum" Maximum = binary 4;
    "Minimum" Minimum = binary 5;

    types [f32, f16, bf16, f64, i64]
    "Add" Add = binary 0;
    "SquaredDifference" SquaredDifference = binary 6;
    "Neg" Neg = unary 41;
    "Abs" Abs = unary 42;
    "Square" Square = unary 43;
    "Sign" Sign = unary 44;
}

elementwise! {
    fn whole;
    types [i8, i16, i64, u8, u16, u32, u64]
    "FloorDiv" FloorDivWhole = binary 7;
    "FloorMod" FloorModWhole = binary 8;
}

elementwise! {
    fn predicates;
    /// The ops whose inputs have the type `T`, and whose result is a bool.
    PREDICATES:
    "Equal" = binary 19;
    "NotEqual" = binary 20;

    types [f32, f16, bf16, f64]
    "IsNan" IsNan = unary 67;
    "IsInf" IsInf = unary 68;
    "IsFinite" IsFinite = unary 69;

    types [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32]
    "Less" Less = binary 15;
    "LessEqual" LessEqual = binary 16;
    "Greater" Greater = binary 17;
    "GreaterEqual" GreaterEqual = binary 18;
}

elementwise! {
    fn others;
    types [i8, i16, i32, i64, u8, u16, u32, u64]
    "BitwiseAnd" BitwiseAnd = binary 84;
    "BitwiseOr" BitwiseOr = binary 85;
    "BitwiseXor" BitwiseXor = binary 86;
    "Invert" Invert = unary 87;
    "LeftShift" LeftShift = binary 88;
    "RightShift" RightShift = binary 89;

    types [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64]
    "ZerosLike" ZerosLike = unary 72;
    "OnesLike" OnesLike = unary 73;
}

/// Adds two tensors of one shape and any type that TensorFlow adds.
pub(super) fn add(
    context: &Run<'_>,
    op: &'static str,
    [a, b]: [&DeviceTensor; 2],
    out: &DeviceTensor,
) -> Result<()> {
    // Types that shaders do not have are added as the parts that they consist of.
    let (number, dtype, parts) = match a.dtype() {
        DType::Bool => return Err(wrong("Trying to add unsupported dtype bool")),
        DType::Float64 => (90, DType::Int64, 1),
        DType::Complex128 => (90, DType::Int64, 2),
        DType::Complex64 => (0, DType::Float32, 2),
        other => (0, other, 1),
    };
    let len = out.len() * parts;
    let operands = [a.into(), b.into(), out.into()];
    let axes = [Strides { len, strides: [1, 1] }];
    with(op, [number, 0], [dtype; 2], len, &axes, &operands, |launch| launch.enqueue(context))
}

const AND: u32 = 33;
const OR: u32 = 34;
const NOT: u32 = 71;

/// The ops on bools.
pub(crate) const LOGICAL: &[Fusible] =
    &[("LogicalAnd", AND, 2), ("LogicalOr", OR, 2), ("LogicalNot", NOT, 1)];

kernels! {
    fn logical;
    types ()
    "LogicalAnd" LogicalAnd () = |run, op| binary(run, op, AND, 0.0);
    "LogicalOr" LogicalOr () = |run, op| binary(run, op, OR, 0.0);
    "LogicalNot" LogicalNot () = |run, op| unary(run, op, NOT, 0.0);
}

const EQUAL: u32 = 19;
const NOT_EQUAL: u32 = 20;

/// Compares as [`binary`] does. Tensors that may differ in shape, and do, are unequal as a whole.
fn compare(context: &Run<'_>, op: &'static str, number: u32, must_fit: bool) -> Result<()> {
    let [a, b] = [0, 1].map(|index| shape(&context.input(index)?));
    if !must_fit && shapes::broadcast_shape(&a?, &b?).is_err() {
        let result = Operand::Value((number == NOT_EQUAL).into());
        return strided_copy::fill(context, op, result, &output(context, 0, &[])?);
    }
    binary(context, op, number, 0.0)
}

/// Reads whether shapes that do not broadcast are an error.
fn must_fit(construction: &OpKernelConstruction<'_>) -> Result<bool> {
    construction.attr("incompatible_shape_error")
}

/// Reads the slope below 0.
fn alpha(construction: &OpKernelConstruction<'_>) -> Result<f32> {
    construction.attr("alpha")
}

kernels! {
    fn comparisons;
    types (T = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64, bool])
    "Equal" Equal [bool = must_fit] () = |run, op, must_fit| compare(run, op, EQUAL, *must_fit);
    "NotEqual" NotEqual [bool = must_fit] () = |run, op, must_fit| compare(run, op, NOT_EQUAL, *must_fit);
    types (T = [f32, f16, bf16, f64])
    "LeakyRelu" LeakyRelu [f32 = alpha] () = |run, op, alpha| unary(run, op, 70, *alpha);
    "LeakyReluGrad" LeakyReluGrad [f32 = alpha] () = |run, op, alpha| binary(run, op, 32, *alpha);
    types (SrcT = [f32, f16, bf16, f64, i8, i32, i64, u8, bool], DstT = [f32, f16, bf16, f64, i8, i32, i64, u8, bool])
    "Cast" Cast () = |run, op| unary(run, op, CAST, 0.0);
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_ops_are_those_of_the_shader() {
        let source = include_str!("../shaders/elementwise.glsl");
        let (_, long) = source.split_once("#ifdef LONG").unwrap();
        let (long, _) = long.split_once("#endif").unwrap();
        let cases = long.split("case ").skip(1);
        let numbers = cases.map(|case| case.split(':').next().unwrap().parse().unwrap());
        assert_eq!(numbers.collect::<Vec<u32>>(), super::LONG);
    }
}
