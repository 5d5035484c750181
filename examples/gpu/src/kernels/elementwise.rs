//! The same for each element. The numbers are those of the ops in `shaders/elementwise.comp`.

use super::*;
use core::marker::PhantomData;

/// The shader for elements of this type.
fn shader_of(dtype: DType) -> &'static Shader {
    if is_float(dtype) { shader!("elementwise.float") } else { shader!("elementwise.int64") }
}

/// Computes op `number` of each two elements of the inputs, which are broadcast.
pub(super) fn binary(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    with_number(context, op, number, 0.0)
}

/// As [`binary`], with a number from an attribute.
fn with_number(context: &Run<'_>, op: &'static str, number: u32, attribute: f32) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let broadcast = Broadcast::new([&shape(&a)?, &shape(&b)?])?;
    let out = output(context, 0, broadcast.shape())?;
    run(context, op, [number, attribute.to_bits()], [&a, &b], &out, broadcast.axes())
}

/// Computes op `number` of each element, in the memory of the input if nothing else uses it.
fn unary(context: &Run<'_>, op: &'static str, number: u32, attribute: f32) -> Result<()> {
    // Not kept: who holds the input is one of its users.
    let shape = context.input(0)?.shape().to_vec();
    let out = match context.input_dtype(0)? == context.output_dtype(0)? {
        true => context.forward_or_output(&[0], 0, &shape)?,
        false => (context.output(0, &shape)?, None),
    };
    let (out, forwarded) = out;
    let input = if forwarded.is_some() { out.clone() } else { context.input(0)? };
    let axes = [Strides { len: input.len(), strides: [1, 1] }];
    run(context, op, [number, attribute.to_bits()], [&input, &input], &out, &axes)
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

fn run(
    context: &Run<'_>,
    op: &'static str,
    [number, attribute]: [u32; 2],
    [a, b]: [&DeviceTensor; 2],
    out: &DeviceTensor,
    axes: &[Strides<2>],
) -> Result<()> {
    let mut numbers = vec![word(out.len())?, attribute];
    for axis in axes {
        numbers.extend([axis.len as u32, axis.strides[0] as u32, axis.strides[1] as u32]);
    }
    let (from, to) = (element_type(a.dtype())?, element_type(out.dtype())?);
    // What is converted to a float, or from one, is computed with as one.
    let shader = if is_float(out.dtype()) { shader_of(out.dtype()) } else { shader_of(a.dtype()) };
    Launch {
        op,
        shader,
        constants: &[number, from, to, axes.len() as u32],
        operands: &[a.into(), b.into(), out.into()],
        numbers: &numbers,
        groups: groups(out.len()),
    }
    .enqueue(context)
}

kernels! {
    types [f32, f16, bf16]
    "Div" Div = |run, op| binary(run, op, 3);
    "RealDiv" RealDiv = |run, op| binary(run, op, 3);
    "FloorDiv" FloorDiv = |run, op| binary(run, op, 7);
    "FloorMod" FloorMod = |run, op| binary(run, op, 8);
    "DivNoNan" DivNoNan = |run, op| binary(run, op, 9);
    "MulNoNan" MulNoNan = |run, op| binary(run, op, 10);
    "Pow" Pow = |run, op| binary(run, op, 11);
    "Xlogy" Xlogy = |run, op| binary(run, op, 12);
    "Xdivy" Xdivy = |run, op| binary(run, op, 13);
    "Atan2" Atan2 = |run, op| binary(run, op, 14);
    "ReluGrad" ReluGrad = |run, op| binary(run, op, 21);
    "Relu6Grad" Relu6Grad = |run, op| binary(run, op, 22);
    "EluGrad" EluGrad = |run, op| binary(run, op, 23);
    "SeluGrad" SeluGrad = |run, op| binary(run, op, 24);
    "SoftplusGrad" SoftplusGrad = |run, op| binary(run, op, 25);
    "SoftsignGrad" SoftsignGrad = |run, op| binary(run, op, 26);
    "SigmoidGrad" SigmoidGrad = |run, op| binary(run, op, 27);
    "TanhGrad" TanhGrad = |run, op| binary(run, op, 28);
    "SqrtGrad" SqrtGrad = |run, op| binary(run, op, 29);
    "RsqrtGrad" RsqrtGrad = |run, op| binary(run, op, 30);
    "ReciprocalGrad" ReciprocalGrad = |run, op| binary(run, op, 31);
    "InvGrad" InvGrad = |run, op| binary(run, op, 31);
    "Relu" Relu = |run, op| unary(run, op, 45, 0.0);
    "Relu6" Relu6 = |run, op| unary(run, op, 46, 0.0);
    "Elu" Elu = |run, op| unary(run, op, 47, 0.0);
    "Selu" Selu = |run, op| unary(run, op, 48, 0.0);
    "Softplus" Softplus = |run, op| unary(run, op, 49, 0.0);
    "Softsign" Softsign = |run, op| unary(run, op, 50, 0.0);
    "Sigmoid" Sigmoid = |run, op| unary(run, op, 51, 0.0);
    "Tanh" Tanh = |run, op| unary(run, op, 52, 0.0);
    "Sqrt" Sqrt = |run, op| unary(run, op, 53, 0.0);
    "Rsqrt" Rsqrt = |run, op| unary(run, op, 54, 0.0);
    "Exp" Exp = |run, op| unary(run, op, 55, 0.0);
    "Expm1" Expm1 = |run, op| unary(run, op, 56, 0.0);
    "Log" Log = |run, op| unary(run, op, 57, 0.0);
    "Log1p" Log1p = |run, op| unary(run, op, 58, 0.0);
    "Sin" Sin = |run, op| unary(run, op, 59, 0.0);
    "Cos" Cos = |run, op| unary(run, op, 60, 0.0);
    "Erf" Erf = |run, op| unary(run, op, 61, 0.0);
    "Erfc" Erfc = |run, op| unary(run, op, 62, 0.0);
    "Floor" Floor = |run, op| unary(run, op, 63, 0.0);
    "Ceil" Ceil = |run, op| unary(run, op, 64, 0.0);
    "Round" Round = |run, op| unary(run, op, 65, 0.0);
    "Rint" Rint = |run, op| unary(run, op, 65, 0.0);
    "Reciprocal" Reciprocal = |run, op| unary(run, op, 66, 0.0);
    "Inv" Inv = |run, op| unary(run, op, 66, 0.0);
    "IsNan" IsNan = |run, op| unary(run, op, 67, 0.0);
    "IsInf" IsInf = |run, op| unary(run, op, 68, 0.0);
    "IsFinite" IsFinite = |run, op| unary(run, op, 69, 0.0);

    // TensorFlow keeps int32 on the host, and has kernels for it there.
    types [f32, f16, bf16, i64]
    "AddV2" AddV2 = |run, op| binary(run, op, 0);
    "Add" Add = |run, op| binary(run, op, 0);
    "Sub" Sub = |run, op| binary(run, op, 1);
    "Mul" Mul = |run, op| binary(run, op, 2);
    "Maximum" Maximum = |run, op| binary(run, op, 4);
    "Minimum" Minimum = |run, op| binary(run, op, 5);
    "SquaredDifference" SquaredDifference = |run, op| binary(run, op, 6);
    "Less" Less = |run, op| binary(run, op, 15);
    "LessEqual" LessEqual = |run, op| binary(run, op, 16);
    "Greater" Greater = |run, op| binary(run, op, 17);
    "GreaterEqual" GreaterEqual = |run, op| binary(run, op, 18);
    "Neg" Neg = |run, op| unary(run, op, 41, 0.0);
    "Abs" Abs = |run, op| unary(run, op, 42, 0.0);
    "Square" Square = |run, op| unary(run, op, 43, 0.0);
    "Sign" Sign = |run, op| unary(run, op, 44, 0.0);

    types [f32, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "Equal" Equal = |run, op| binary(run, op, 19);
    "NotEqual" NotEqual = |run, op| binary(run, op, 20);

    types [f32, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "ZerosLike" ZerosLike = |run, op| unary(run, op, 72, 0.0);
    "OnesLike" OnesLike = |run, op| unary(run, op, 73, 0.0);
}

kernels! {
    types [f32, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "AddN" AddN = |run, op| {
        let parts = inputs(run, "inputs")?;
        let [first, rest @ ..] = &parts[..] else { return Err(wrong("there is nothing to add")) };
        if let Some(other) = rest.iter().find(|part| part.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return Err(wrong(format!(
                "Inputs to operation {op} must have the same size and shape: {one:?} != {other:?}"
            )));
        }
        let [second, rest @ ..] = rest else { return run.set_output(0, first) };
        let out = run.output(0, first.shape())?;
        let axes = [Strides { len: out.len(), strides: [1, 1] }];
        self::run(run, op, [0, 0], [first, second], &out, &axes)?;
        rest.iter().try_for_each(|part| self::run(run, op, [0, 0], [&out, part], &out, &axes))
    };
}

/// Kernels without types.
macro_rules! logical {
    ($($op:literal $name:ident = $body:expr;)*) => {$(
        struct $name;

        #[kernel(op = $op)]
        impl Kernel for $name {
            type Platform = GpuPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self)
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    )*};
}

logical! {
    "LogicalAnd" LogicalAnd = |run, op| binary(run, op, 33);
    "LogicalOr" LogicalOr = |run, op| binary(run, op, 34);
    "LogicalNot" LogicalNot = |run, op| unary(run, op, 71, 0.0);
}

macro_rules! leaky {
    ($($op:literal $name:ident = $body:expr;)*) => {$(
        struct $name<T> {
            alpha: f32,
            elements: PhantomData<T>,
        }

        #[kernel(op = $op, types(T = [f32, f16, bf16]))]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self { alpha: construction.attr("alpha")?, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str, f32) -> Result<()> = $body;
                body(context, $op, self.alpha)
            }
        }
    )*};
}

leaky! {
    "LeakyRelu" LeakyRelu = |run, op, alpha| unary(run, op, 70, alpha);
    "LeakyReluGrad" LeakyReluGrad = |run, op, alpha| with_number(run, op, 32, alpha);
}

struct Cast<S, D>(PhantomData<(S, D)>);

#[allow(non_camel_case_types, reason = "the attributes have these names")]
const _: () = {
    #[kernel(
        op = "Cast",
        types(
            SrcT = [f32, f16, bf16, i8, i32, i64, u8, bool],
            DstT = [f32, f16, bf16, i8, i32, i64, u8, bool]
        )
    )]
    impl<SrcT: Element, DstT: Element> Kernel for Cast<SrcT, DstT> {
        type Platform = GpuPlatform;

        fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self(PhantomData))
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
            unary(context, "Cast", 40, 0.0)
        }
    }
};
