//! Elementwise operations.

use super::*;
use crate::math::scalar as f;
use core::marker::PhantomData;
use num_traits::Float as _;
use se_plugin::toolkit::ops::{add_all, binary, divide, map, unary};

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
    "Sigmoid" Sigmoid = |run, op| unary::<T, _>(run, op, wide::<T>(f::sigmoid));
    "Tanh" Tanh = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.tanh()));
    "Erfc" Erfc = |run, op| unary::<T, _>(run, op, wide::<T>(f::erfc));
    "Exp" Exp = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.exp()));
    "Sqrt" Sqrt = |run, op| unary::<T, _>(run, op, wide::<T>(|x| x.sqrt()));
    "Rsqrt" Rsqrt = |run, op| unary::<T, _>(run, op, wide::<T>(f::rsqrt));
    "ReluGrad" ReluGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::relu_grad));
    "SigmoidGrad" SigmoidGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::sigmoid_grad));
    "TanhGrad" TanhGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::tanh_grad));
    "RsqrtGrad" RsqrtGrad = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::rsqrt_grad));
    "RealDiv" RealDiv = |run, op| binary::<T, T, _>(run, op, T::divide);
    "FloorDiv" FloorDiv = |run, op| binary::<T, T, _>(run, op, T::floor_div);
    "FloorMod" FloorMod = |run, op| binary::<T, T, _>(run, op, T::floor_mod);
    "DivNoNan" DivNoNan = |run, op| binary::<T, T, _>(run, op, wide2::<T>(f::div_no_nan));
    "Pow" Pow = |run, op| binary::<T, T, _>(run, op, wide2::<T>(|x, y| x.powf(y)));
    "IsFinite" IsFinite = |run, op| map::<T, u8, _>(run, op, |x| x.widen().is_finite().into());

    // TensorFlow keeps int32 on the host, and has kernels for it there.
    Numeric [f32, f64, f16, bf16, i64]
    "Neg" Neg = |run, op| unary::<T, _>(run, op, |x| T::ZERO.minus(x));
    "Abs" Abs = |run, op| unary::<T, _>(run, op, T::magnitude);
    "Sign" Sign = |run, op| unary::<T, _>(run, op, T::sign);
    "Square" Square = |run, op| unary::<T, _>(run, op, |x| x.times(x));
    "AddV2" AddV2 = |run, op| binary::<T, T, _>(run, op, T::plus);
    "Sub" Sub = |run, op| binary::<T, T, _>(run, op, T::minus);
    "Mul" Mul = |run, op| binary::<T, T, _>(run, op, T::times);
    "Maximum" Maximum = |run, op| binary::<T, T, _>(run, op, T::max_or_nan);
    "SquaredDifference" SquaredDifference = |run, op| {
        binary::<T, T, _>(run, op, |x, y| x.minus(y).times(x.minus(y)))
    };
    "Less" Less = |run, op| binary::<T, u8, _>(run, op, |x, y| (x < y).into());

    Numeric [i64]
    "FloorDiv" FloorDivIntegers = |run, op| divide::<T, _>(run, op, T::floor_div);
    "FloorMod" FloorModIntegers = |run, op| divide::<T, _>(run, op, T::floor_mod);

    Numeric [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "AddN" AddN = |run, op| add_all::<T, _>(run, op);

    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "SelectV2" SelectV2 = |run, op| select::<T>(run, op);
}

untyped! {
    "LogicalAnd" LogicalAnd () =
        |run, op| binary::<u8, u8, _>(run, op, |x, y| (x != 0 && y != 0).into());
}

/// Whether elements are equal. Unless shapes `must_fit`, tensors that do not broadcast are unequal: the output is a scalar.
struct Equal<T> {
    must_fit: bool,
    elements: PhantomData<T>,
}

#[kernel(op = "Equal", types(T = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]))]
impl<T: Cell> Kernel for Equal<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let must_fit = construction.attr("incompatible_shape_error")?;
        Ok(Self { must_fit, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let (a, b) = (input_shape(context, 0)?, input_shape(context, 1)?);
        if !self.must_fit && shapes::broadcast_shape(&a, &b).is_err() {
            let out = output(context, 0, &[])?;
            return launch(context, "Equal", [], [&out], |[], [out]| {
                out.fill(false.into());
                Ok(())
            });
        }
        binary::<T::Pod, u8, _>(context, "Equal", |x, y| (x == y).into())
    }
}

/// Selects each element from one of two tensors by a condition.
fn select<T: Stored>(context: &Run<'_>, op: &'static str) -> Result<()> {
    let [condition, a, b] = [0, 1, 2].map(|index| context.input(index));
    let (condition, a, b) = (condition?, a?, b?);
    let broadcast = Broadcast::new([&shape(&condition)?, &shape(&a)?, &shape(&b)?])?;
    let out = output(context, 0, broadcast.shape())?;
    launch(context, op, [&condition, &a, &b], [&out], move |[condition, a, b], [out]| {
        let (a, b) = (elements::<T::Bits>(a)?, elements(b)?);
        loops::select(condition, a, b, elements_mut(out)?, &broadcast);
        Ok(())
    })
}
