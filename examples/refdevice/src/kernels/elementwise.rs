//! Elementwise operations.

use super::*;
use crate::math::cast::CastTo;
use crate::math::scalar as f;
use core::marker::PhantomData;
use num_traits::Float as _;
use se_plugin::toolkit::ops::{add_all, binary, divide, map, unary};

/// A kernel without attributes: `$body` gets the run and the name of the operation.
macro_rules! kernels {
    ($($bound:ident $types:tt $($op:literal $name:ident = $body:expr;)*)*) => {$($(
        kernels!(@one $bound $types $op $name = $body);
    )*)*};
    (@one $bound:ident $types:tt $op:literal $name:ident = $body:expr) => {
        struct $name<T>(PhantomData<T>);

        #[kernel(op = $op, types(T = $types))]
        impl<T: $bound> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    };
}

/// Converts a function of `T::Wide` into a function of `T`.
fn wide<T: Floating>(f: impl Fn(T::Wide) -> T::Wide) -> impl Fn(T) -> T {
    move |x| T::narrow(f(x.widen()))
}

/// Converts a function of two `T::Wide` into a function of two `T`.
fn wide2<T: Floating>(f: impl Fn(T::Wide, T::Wide) -> T::Wide) -> impl Fn(T, T) -> T {
    move |x, y| T::narrow(f(x.widen(), y.widen()))
}

kernels! {
    Floating [f32, f64, f16, bf16]
    "Relu" Relu = |run, op| unary::<T, _>(run, op, wide::<T>(f::relu));
    "Relu6" Relu6 = |run, op| unary::<T, _>(run, op, wide::<T>(f::relu6));
    "Elu" Elu = |run, op| unary::<T, _>(run, op, wide::<T>(f::elu));
    "Selu" Selu = |run, op| unary::<T, _>(run, op, wide::<T>(f::selu));
    "Softplus" Softplus = |run, op| unary::<T, _>(run, op, wide::<T>(f::softplus));
    "Softsign" Softsign = |run, op| unary::<T, _>(run, op, wide::<T>(f::softsign));
    "Sigmoid" Sigmoid = |run, op| unary::<T, _>(run, op, wide::<T>(f::sigmoid));
    "Tanh" Tanh = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.tanh()));
    "Sqrt" Sqrt = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.sqrt()));
    "Rsqrt" Rsqrt = |run, op| unary::<T, _>(run, op, wide::<T>(f::rsqrt));
    "Exp" Exp = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.exp()));
    "Expm1" Expm1 = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.exp_m1()));
    "Log" Log = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.ln()));
    "Log1p" Log1p = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.ln_1p()));
    "Sin" Sin = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.sin()));
    "Cos" Cos = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.cos()));
    "Erf" Erf = |run, op| unary::<T, _>(run, op, wide::<T>(f::erf));
    "Erfc" Erfc = |run, op| unary::<T, _>(run, op, wide::<T>(f::erfc));
    "Floor" Floor = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.floor()));
    "Ceil" Ceil = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.ceil()));
    "Round" Round = |run, op| unary::<T, _>(run, op, wide::<T>(f::round));
    "Rint" Rint = |run, op| unary::<T, _>(run, op, wide::<T>(f::round));
    "Reciprocal" Reciprocal = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.recip()));
    "Inv" Inv = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.recip()));
    "ReluGrad" ReluGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::relu_grad));
    "Relu6Grad" Relu6Grad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::relu6_grad));
    "EluGrad" EluGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::elu_grad));
    "SeluGrad" SeluGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::selu_grad));
    "SoftplusGrad" SoftplusGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::softplus_grad));
    "SoftsignGrad" SoftsignGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::softsign_grad));
    "SigmoidGrad" SigmoidGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::sigmoid_grad));
    "TanhGrad" TanhGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::tanh_grad));
    "SqrtGrad" SqrtGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::sqrt_grad));
    "RsqrtGrad" RsqrtGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::rsqrt_grad));
    "ReciprocalGrad" ReciprocalGrad =
        |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::reciprocal_grad));
    "InvGrad" InvGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::reciprocal_grad));
    "RealDiv" RealDiv = |run, op| binary::<T, T, _>(run, op, T::divide);
    "Div" Div = |run, op| binary::<T, T, _>(run, op, T::divide);
    "FloorDiv" FloorDiv = |run, op| binary::<T, T, _>(run, op, T::floor_div);
    "FloorMod" FloorMod = |run, op| binary::<T, T, _>(run, op, T::floor_mod);
    "DivNoNan" DivNoNan = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::div_no_nan));
    "MulNoNan" MulNoNan = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::mul_no_nan));
    "Pow" Pow = |run, op| binary::<T, T, _>(run, op, wide2::<T>(|x, y| x.powf(y)));
    "Xlogy" Xlogy = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::xlogy));
    "Xdivy" Xdivy = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::xdivy));
    "Atan2" Atan2 = |run, op| binary::<T, T, _>(run, op, wide2::<T>(|y, x| y.atan2(x)));
    "IsNan" IsNan = |run, op| map::<T, u8, _>(run, op, |x| x.widen().is_nan().into());
    "IsInf" IsInf = |run, op| map::<T, u8, _>(run, op, |x| x.widen().is_infinite().into());
    "IsFinite" IsFinite = |run, op| map::<T, u8, _>(run, op, |x| x.widen().is_finite().into());

    // TensorFlow keeps int32 on the host, and has kernels for it there.
    Numeric [f32, f64, f16, bf16, i64]
    "Neg" Neg = |run, op| unary::<T, _>(run, op, |x| T::ZERO.minus(x));
    "Abs" Abs = |run, op| unary::<T, _>(run, op, T::magnitude);
    "Square" Square = |run, op| unary::<T, _>(run, op, |x| x.times(x));
    "Sign" Sign = |run, op| unary::<T, _>(run, op, T::sign);
    "AddV2" AddV2 = |run, op| binary::<T, T, _>(run, op, T::plus);
    "Add" Add = |run, op| binary::<T, T, _>(run, op, T::plus);
    "Sub" Sub = |run, op| binary::<T, T, _>(run, op, T::minus);
    "Mul" Mul = |run, op| binary::<T, T, _>(run, op, T::times);
    "Maximum" Maximum = |run, op| binary::<T, T, _>(run, op, T::max_or_nan);
    "Minimum" Minimum = |run, op| binary::<T, T, _>(run, op, T::min_or_nan);
    "SquaredDifference" SquaredDifference = |run, op| {
        binary::<T, T, _>(run, op, |x, y| x.minus(y).times(x.minus(y)))
    };
    "Less" Less = |run, op| binary::<T, u8, _>(run, op, |x, y| (x < y).into());
    "LessEqual" LessEqual = |run, op| binary::<T, u8, _>(run, op, |x, y| (x <= y).into());
    "Greater" Greater = |run, op| binary::<T, u8, _>(run, op, |x, y| (x > y).into());
    "GreaterEqual" GreaterEqual = |run, op| binary::<T, u8, _>(run, op, |x, y| (x >= y).into());

    Numeric [i64]
    "Div" DivIntegers = |run, op| divide::<T, _>(run, op, T::divide);
    "TruncateDiv" TruncateDiv = |run, op| divide::<T, _>(run, op, T::divide);
    "FloorDiv" FloorDivIntegers = |run, op| divide::<T, _>(run, op, T::floor_div);
    "FloorMod" FloorModIntegers = |run, op| divide::<T, _>(run, op, T::floor_mod);
    "TruncateMod" TruncateMod = |run, op| divide::<T, _>(run, op, T::truncate_mod);
    "Mod" Mod = |run, op| divide::<T, _>(run, op, T::truncate_mod);

    Stored [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "ZerosLike" ZerosLike = |run, op| constant::<T>(run, op, T::default());

    Numeric [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "OnesLike" OnesLike = |run, op| constant::<T>(run, op, T::ONE);
    "AddN" AddN = |run, op| add_all::<T, _>(run, op);
}

/// Fills an output of the input's shape with `value`.
fn constant<T: Stored>(context: &Run<'_>, op: &'static str, value: T) -> Result<()> {
    let x = context.input(0)?;
    let out = context.output(0, x.shape())?;
    let bits = value.bits();
    launch(context, op, [], [&out], move |[], [out]| {
        elements_mut(out)?.fill(bits);
        Ok(())
    })
}

/// Compares elements. Unless they `must_fit`, tensors that do not broadcast are unequal, and the result is a scalar.
fn compare<A: Pod + PartialEq>(
    context: &Run<'_>,
    op: &'static str,
    must_fit: bool,
    is: fn(bool) -> bool,
) -> Result<()> {
    let [a, b] = [0, 1].map(|index| shape(&context.input(index)?));
    if !must_fit && shapes::broadcast_shape(&a?, &b?).is_err() {
        let out = output(context, 0, &[])?;
        return launch(context, op, [], [&out], move |[], [out]| {
            out.fill(is(false).into());
            Ok(())
        });
    }
    binary::<A, u8, _>(context, op, move |x, y| is(x == y).into())
}

/// Kernels for numbers and for `bool`, which is compared as a byte.
macro_rules! equality {
    ($($op:literal $name:ident $of_bools:ident = $is:expr;)*) => {$(
        struct $name<T>(bool, PhantomData<T>);

        #[kernel(op = $op, types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]))]
        impl<T: Numeric> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(construction.attr("incompatible_shape_error")?, PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                compare::<T>(context, $op, self.0, $is)
            }
        }

        struct $of_bools(bool);

        #[kernel(op = $op, types(T = [bool]))]
        impl Kernel for $of_bools {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(construction.attr("incompatible_shape_error")?))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                compare::<u8>(context, $op, self.0, $is)
            }
        }
    )*};
}

equality! {
    "Equal" Equal EqualBool = |is| is;
    "NotEqual" NotEqual NotEqualBool = |is| !is;
}

untyped! {
    "LogicalNot" LogicalNot () = |run, op| map::<u8, u8, _>(run, op, |x| (x == 0).into());
    "LogicalAnd" LogicalAnd () =
        |run, op| binary::<u8, u8, _>(run, op, |x, y| (x != 0 && y != 0).into());
    "LogicalOr" LogicalOr () =
        |run, op| binary::<u8, u8, _>(run, op, |x, y| (x != 0 || y != 0).into());
}

struct LeakyRelu<T> {
    alpha: f32,
    elements: PhantomData<T>,
}

/// Returns the slope below 0.
fn alpha<T: Floating>(alpha: f32) -> T::Wide {
    T::from_f64(alpha.into()).widen()
}

#[kernel(op = "LeakyRelu", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for LeakyRelu<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { alpha: construction.attr("alpha")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        unary::<T, _>(context, "LeakyRelu", wide::<T>(f::leaky_relu(alpha::<T>(self.alpha))))
    }
}

struct LeakyReluGrad<T> {
    alpha: f32,
    elements: PhantomData<T>,
}

#[kernel(op = "LeakyReluGrad", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for LeakyReluGrad<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { alpha: construction.attr("alpha")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let f = f::leaky_relu_grad(alpha::<T>(self.alpha));
        binary::<T, T, _>(context, "LeakyReluGrad", wide2::<T>(f))
    }
}

/// Selects each element from one of two tensors by a condition. With `by_row` a vector of conditions selects rows.
fn select<T: Stored>(context: &Run<'_>, op: &'static str, by_row: bool) -> Result<()> {
    let [condition, a, b] = [0, 1, 2].map(|index| context.input(index));
    let (condition, a, b) = (condition?, a?, b?);
    let (mut c_shape, a_shape, b_shape) = (shape(&condition)?, shape(&a)?, shape(&b)?);
    if by_row {
        if a_shape != b_shape {
            return Err(wrong(format!("Incompatible shapes: {a_shape:?} vs. {b_shape:?}")));
        }
        let fits = match c_shape[..] {
            [] => true,
            // A vector chooses rows.
            [rows] if a_shape.len() != 1 => a_shape.first() == Some(&rows),
            _ => c_shape == a_shape,
        };
        if !fits {
            return Err(wrong(format!("Incompatible shapes: {c_shape:?} vs. {a_shape:?}")));
        }
        if !c_shape.is_empty() {
            c_shape.resize(a_shape.len(), 1);
        }
    }
    let broadcast = Broadcast::new([&c_shape, &a_shape, &b_shape])?;
    let out = output(context, 0, broadcast.shape())?;
    launch(context, op, [&condition, &a, &b], [&out], move |[condition, a, b], [out]| {
        let (a, b) = (elements::<T::Bits>(a)?, elements(b)?);
        loops::select(condition, a, b, elements_mut(out)?, &broadcast);
        Ok(())
    })
}

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "Select" Select = |run, op| select::<T>(run, op, true);
    "SelectV2" SelectV2 = |run, op| select::<T>(run, op, false);
}

/// An element with its type in memory, which is a byte for `bool`.
trait Cell: Element {
    type Pod: Pod;
    fn load(pod: Self::Pod) -> Self;
    fn store(self) -> Self::Pod;
}

macro_rules! cells {
    ($($element:ty)*) => {$(
        impl Cell for $element {
            type Pod = $element;
            fn load(pod: $element) -> Self {
                pod
            }
            fn store(self) -> $element {
                self
            }
        }
    )*};
}
cells!(f32 f64 f16 bf16 i8 i32 i64 u8);
impl Cell for bool {
    type Pod = u8;
    fn load(pod: u8) -> Self {
        pod != 0
    }
    fn store(self) -> u8 {
        self.into()
    }
}

struct Cast<S, D>(PhantomData<(S, D)>);

macro_rules! casts {
    ($($from:ty)*; $to:tt) => {$(
        #[kernel(op = "Cast", types(SrcT = [$from], DstT = $to))]
        impl<DstT: Cell> Kernel for Cast<$from, DstT>
        where
            $from: CastTo<DstT>,
        {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                map::<<$from as Cell>::Pod, DstT::Pod, _>(context, "Cast", |x| {
                    CastTo::<DstT>::cast(<$from>::load(x)).store()
                })
            }
        }
    )*};
}

casts!(f32 f64 f16 bf16 i8 i32 i64 u8 bool; [f32, f64, f16, bf16, i8, i32, i64, u8, bool]);
