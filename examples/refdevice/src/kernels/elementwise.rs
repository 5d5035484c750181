//! The same for each element.

use super::*;
use crate::math::cast::CastTo;
use crate::math::elementwise::{self, Broadcast};
use crate::math::{scalar as f, shape as shapes};
use core::marker::PhantomData;
use num_traits::Float as _;

/// What computes an output from inputs, whose elements it knows.
type Work = dyn FnOnce(&[&[u8]], &mut [u8]) -> Result<()> + Send;

/// Runs `work` on the input, or in its memory, and then on no input, if nobody else uses it. Not generic, as what
/// follows: there are some hundreds of operations with their types.
fn in_place(context: &Run<'_>, op: &'static str, work: Box<Work>) -> Result<()> {
    // Not kept: who holds the input is one of its users.
    let shape = context.input(0)?.shape().to_vec();
    let (out, forwarded) = context.forward_or_output(&[0], 0, &shape)?;
    if forwarded.is_some() {
        return launch(context, op, [], [&out], move |[], [out]| work(&[], out));
    }
    let x = context.input(0)?;
    launch(context, op, [&x], [&out], move |[x], [out]| work(&[x], out))
}

/// Runs `work` on the input, for an output of its shape.
fn same_shape(context: &Run<'_>, op: &'static str, work: Box<Work>) -> Result<()> {
    let x = context.input(0)?;
    let out = context.output(0, x.shape())?;
    launch(context, op, [&x], [&out], move |[x], [out]| work(&[x], out))
}

/// What computes an output from two inputs that are broadcast.
type Work2 = dyn FnOnce([&[u8]; 2], &mut [u8], &Broadcast) -> Result<()> + Send;

/// Runs `work` on two inputs. With `waits`, an error of the work is that of the operation.
fn both(context: &Run<'_>, op: &'static str, waits: bool, work: Box<Work2>) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_shape, b_shape) = (shape(&a)?, shape(&b)?);
    let shape = shapes::broadcast(&a_shape, &b_shape)?;
    let out = output(context, 0, &shape)?;
    let broadcast = Broadcast::new(&a_shape, &b_shape, &shape);
    let work = move |ins: [&[u8]; 2], [out]: [&mut [u8]; 1]| work(ins, out, &broadcast);
    match waits {
        true => run(context, op, [&a, &b], [&out], work),
        false => launch(context, op, [&a, &b], [&out], work),
    }
}

/// `f` of each element, in the memory of the input if nobody else uses it.
fn unary<T: Numeric>(
    context: &Run<'_>,
    op: &'static str,
    f: impl Fn(T) -> T + Send + 'static,
) -> Result<()> {
    let work = move |x: &[&[u8]], out: &mut [u8]| {
        let out = cells_mut::<T>(out)?;
        match x {
            [] => elementwise::map_in_place(out, f),
            [x, ..] => elementwise::map(cells::<T>(x)?, out, f),
        }
        Ok(())
    };
    in_place(context, op, Box::new(work))
}

/// As [`unary`], for another type of elements.
fn map<A: Pod, B: Pod>(
    context: &Run<'_>,
    op: &'static str,
    f: impl Fn(A) -> B + Send + 'static,
) -> Result<()> {
    let work = move |x: &[&[u8]], out: &mut [u8]| {
        elementwise::map(cells::<A>(x[0])?, cells_mut::<B>(out)?, f);
        Ok(())
    };
    same_shape(context, op, Box::new(work))
}

/// `f` of each two elements.
fn binary<A: Pod, B: Pod>(
    context: &Run<'_>,
    op: &'static str,
    f: impl Fn(A, A) -> B + Send + 'static,
) -> Result<()> {
    let work = move |[a, b]: [&[u8]; 2], out: &mut [u8], broadcast: &Broadcast| {
        elementwise::zip(cells::<A>(a)?, cells::<A>(b)?, cells_mut::<B>(out)?, broadcast, f);
        Ok(())
    };
    both(context, op, false, Box::new(work))
}

/// `f` of each two elements, where the second must not be 0.
fn divide<T: Numeric>(context: &Run<'_>, op: &'static str, f: fn(T, T) -> T) -> Result<()> {
    let work = move |[a, b]: [&[u8]; 2], out: &mut [u8], broadcast: &Broadcast| {
        let (b, out) = (cells::<T>(b)?, cells_mut::<T>(out)?);
        if !out.is_empty() && b.contains(&T::ZERO) {
            return Err(wrong("Integer division by zero"));
        }
        elementwise::zip(cells::<T>(a)?, b, out, broadcast, f);
        Ok(())
    };
    both(context, op, true, Box::new(work))
}

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

            fn new(_: &Construction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    };
}

/// A function of `Wide` as one of `T`.
fn wide<T: Floating>(f: impl Fn(T::Wide) -> T::Wide) -> impl Fn(T) -> T {
    move |x| T::narrow(f(x.wide()))
}

/// A function of two `Wide` as one of two `T`.
fn wide2<T: Floating>(f: impl Fn(T::Wide, T::Wide) -> T::Wide) -> impl Fn(T, T) -> T {
    move |x, y| T::narrow(f(x.wide(), y.wide()))
}

kernels! {
    Floating [f32, f64, f16, bf16]
    "Relu" Relu = |run, op| unary::<T>(run, op, wide::<T>(f::relu));
    "Relu6" Relu6 = |run, op| unary::<T>(run, op, wide::<T>(f::relu6));
    "Elu" Elu = |run, op| unary::<T>(run, op, wide::<T>(f::elu));
    "Selu" Selu = |run, op| unary::<T>(run, op, wide::<T>(f::selu));
    "Softplus" Softplus = |run, op| unary::<T>(run, op, wide::<T>(f::softplus));
    "Softsign" Softsign = |run, op| unary::<T>(run, op, wide::<T>(f::softsign));
    "Sigmoid" Sigmoid = |run, op| unary::<T>(run, op, wide::<T>(f::sigmoid));
    "Tanh" Tanh = |run, op| unary::<T>(run, op, wide::<T>(|x| x.tanh()));
    "Sqrt" Sqrt = |run, op| unary::<T>(run, op, wide::<T>(|x| x.sqrt()));
    "Rsqrt" Rsqrt = |run, op| unary::<T>(run, op, wide::<T>(f::rsqrt));
    "Exp" Exp = |run, op| unary::<T>(run, op, wide::<T>(|x| x.exp()));
    "Expm1" Expm1 = |run, op| unary::<T>(run, op, wide::<T>(|x| x.exp_m1()));
    "Log" Log = |run, op| unary::<T>(run, op, wide::<T>(|x| x.ln()));
    "Log1p" Log1p = |run, op| unary::<T>(run, op, wide::<T>(|x| x.ln_1p()));
    "Sin" Sin = |run, op| unary::<T>(run, op, wide::<T>(|x| x.sin()));
    "Cos" Cos = |run, op| unary::<T>(run, op, wide::<T>(|x| x.cos()));
    "Erf" Erf = |run, op| unary::<T>(run, op, wide::<T>(f::erf));
    "Floor" Floor = |run, op| unary::<T>(run, op, wide::<T>(|x| x.floor()));
    "Ceil" Ceil = |run, op| unary::<T>(run, op, wide::<T>(|x| x.ceil()));
    "Round" Round = |run, op| unary::<T>(run, op, wide::<T>(f::round));
    "Rint" Rint = |run, op| unary::<T>(run, op, wide::<T>(f::round));
    "Reciprocal" Reciprocal = |run, op| unary::<T>(run, op, wide::<T>(|x| x.recip()));
    "Inv" Inv = |run, op| unary::<T>(run, op, wide::<T>(|x| x.recip()));
    "ReluGrad" ReluGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::relu_grad));
    "Relu6Grad" Relu6Grad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::relu6_grad));
    "EluGrad" EluGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::elu_grad));
    "SeluGrad" SeluGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::selu_grad));
    "SoftplusGrad" SoftplusGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::softplus_grad));
    "SoftsignGrad" SoftsignGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::softsign_grad));
    "SigmoidGrad" SigmoidGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::sigmoid_grad));
    "TanhGrad" TanhGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::tanh_grad));
    "SqrtGrad" SqrtGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::sqrt_grad));
    "RsqrtGrad" RsqrtGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::rsqrt_grad));
    "ReciprocalGrad" ReciprocalGrad =
        |run, op| binary::<T, T>(run, op, wide2::<T>(f::reciprocal_grad));
    "InvGrad" InvGrad = |run, op| binary::<T, T>(run, op, wide2::<T>(f::reciprocal_grad));
    "RealDiv" RealDiv = |run, op| binary::<T, T>(run, op, T::over);
    "Div" Div = |run, op| binary::<T, T>(run, op, T::over);
    "FloorDiv" FloorDiv = |run, op| binary::<T, T>(run, op, T::floor_over);
    "FloorMod" FloorMod = |run, op| binary::<T, T>(run, op, T::floor_remainder);
    "DivNoNan" DivNoNan = |run, op| binary::<T, T>(run, op, wide2::<T>(f::div_no_nan));
    "MulNoNan" MulNoNan = |run, op| binary::<T, T>(run, op, wide2::<T>(f::mul_no_nan));
    "Pow" Pow = |run, op| binary::<T, T>(run, op, wide2::<T>(|x, y| x.powf(y)));
    "Xlogy" Xlogy = |run, op| binary::<T, T>(run, op, wide2::<T>(f::xlogy));
    "Xdivy" Xdivy = |run, op| binary::<T, T>(run, op, wide2::<T>(f::xdivy));
    "Atan2" Atan2 = |run, op| binary::<T, T>(run, op, wide2::<T>(|y, x| y.atan2(x)));
    "IsNan" IsNan = |run, op| map::<T, u8>(run, op, |x| x.wide().is_nan().into());
    "IsInf" IsInf = |run, op| map::<T, u8>(run, op, |x| x.wide().is_infinite().into());
    "IsFinite" IsFinite = |run, op| map::<T, u8>(run, op, |x| x.wide().is_finite().into());

    // TensorFlow keeps int32 on the host, and has kernels for it there.
    Numeric [f32, f64, f16, bf16, i64]
    "Neg" Neg = |run, op| unary::<T>(run, op, |x| T::ZERO.minus(x));
    "Abs" Abs = |run, op| unary::<T>(run, op, T::magnitude);
    "Square" Square = |run, op| unary::<T>(run, op, |x| x.times(x));
    "Sign" Sign = |run, op| unary::<T>(run, op, T::sign);
    "AddV2" AddV2 = |run, op| binary::<T, T>(run, op, T::plus);
    "Add" Add = |run, op| binary::<T, T>(run, op, T::plus);
    "Sub" Sub = |run, op| binary::<T, T>(run, op, T::minus);
    "Mul" Mul = |run, op| binary::<T, T>(run, op, T::times);
    "Maximum" Maximum = |run, op| binary::<T, T>(run, op, T::greater);
    "Minimum" Minimum = |run, op| binary::<T, T>(run, op, T::smaller);
    "SquaredDifference" SquaredDifference = |run, op| {
        binary::<T, T>(run, op, |x, y| x.minus(y).times(x.minus(y)))
    };
    "Less" Less = |run, op| binary::<T, u8>(run, op, |x, y| (x < y).into());
    "LessEqual" LessEqual = |run, op| binary::<T, u8>(run, op, |x, y| (x <= y).into());
    "Greater" Greater = |run, op| binary::<T, u8>(run, op, |x, y| (x > y).into());
    "GreaterEqual" GreaterEqual = |run, op| binary::<T, u8>(run, op, |x, y| (x >= y).into());

    Numeric [i64]
    "Div" DivIntegers = |run, op| divide::<T>(run, op, T::over);
    "TruncateDiv" TruncateDiv = |run, op| divide::<T>(run, op, T::over);
    "FloorDiv" FloorDivIntegers = |run, op| divide::<T>(run, op, T::floor_over);
    "FloorMod" FloorModIntegers = |run, op| divide::<T>(run, op, T::floor_remainder);
    "TruncateMod" TruncateMod = |run, op| divide::<T>(run, op, T::remainder);
    "Mod" Mod = |run, op| divide::<T>(run, op, T::remainder);

    Stored [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool]
    "ZerosLike" ZerosLike = |run, op| constant::<T>(run, op, T::default());

    Numeric [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]
    "OnesLike" OnesLike = |run, op| constant::<T>(run, op, T::ONE);
    "AddN" AddN = |run, op| add_all::<T>(run, op);
}

/// A tensor of the shape of the input with equal elements.
fn constant<T: Stored>(context: &Run<'_>, op: &'static str, value: T) -> Result<()> {
    let x = context.input(0)?;
    let out = context.output(0, x.shape())?;
    let bits = value.bits();
    launch(context, op, [], [&out], move |[], [out]| {
        cells_mut(out)?.fill(bits);
        Ok(())
    })
}

/// The sum of all inputs.
fn add_all<T: Numeric>(context: &Run<'_>, op: &'static str) -> Result<()> {
    let parts = inputs(context, "inputs")?;
    let first = parts.first().ok_or_else(|| wrong("there is nothing to add"))?;
    if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
        let (one, other) = (first.shape(), other.shape());
        return Err(wrong(format!(
            "Inputs to operation AddN must have the same size and shape: {one:?} != {other:?}"
        )));
    }
    let out = context.output(0, first.shape())?;
    launch_lists(context, op, &parts, &[out], move |parts, mut outs| {
        let out = cells_mut::<T>(outs[0])?;
        out.copy_from_slice(cells(parts[0])?);
        for part in &parts[1..] {
            elementwise::update(out, cells::<T>(part)?, T::plus);
        }
        Ok(())
    })
}

macro_rules! equality {
    ($($op:literal $name:ident = $is:expr;)*) => {$(
        kernels!(@one Numeric [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64] $op $name = |run, op| {
            binary::<T, u8>(run, op, |x, y| $is(x == y).into())
        });
    )*};
}

equality! {
    "Equal" Equal = |is: bool| is;
    "NotEqual" NotEqual = |is: bool| !is;
}

macro_rules! logical {
    ($($op:literal $name:ident = $body:expr;)*) => {$(
        struct $name;

        #[kernel(op = $op)]
        impl Kernel for $name {
            type Platform = RefPlatform;

            fn new(_: &Construction<'_>) -> Result<Self> {
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
    "LogicalNot" LogicalNot = |run, op| map::<u8, u8>(run, op, |x| (x == 0).into());
    "LogicalAnd" LogicalAnd =
        |run, op| binary::<u8, u8>(run, op, |x, y| (x != 0 && y != 0).into());
    "LogicalOr" LogicalOr =
        |run, op| binary::<u8, u8>(run, op, |x, y| (x != 0 || y != 0).into());
}

struct EqualBool;

#[kernel(op = "Equal", types(T = [bool]))]
impl Kernel for EqualBool {
    type Platform = RefPlatform;

    fn new(_: &Construction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        binary::<u8, u8>(context, "Equal", |x, y| (x == y).into())
    }
}

struct NotEqualBool;

#[kernel(op = "NotEqual", types(T = [bool]))]
impl Kernel for NotEqualBool {
    type Platform = RefPlatform;

    fn new(_: &Construction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        binary::<u8, u8>(context, "NotEqual", |x, y| (x != y).into())
    }
}

struct LeakyRelu<T> {
    alpha: f32,
    elements: PhantomData<T>,
}

/// The slope below 0.
fn alpha<T: Floating>(alpha: f32) -> T::Wide {
    T::of_f64(alpha.into()).wide()
}

#[kernel(op = "LeakyRelu", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for LeakyRelu<T> {
    type Platform = RefPlatform;

    fn new(construction: &Construction<'_>) -> Result<Self> {
        Ok(Self { alpha: construction.attr("alpha")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        unary::<T>(context, "LeakyRelu", wide::<T>(f::leaky_relu(alpha::<T>(self.alpha))))
    }
}

struct LeakyReluGrad<T> {
    alpha: f32,
    elements: PhantomData<T>,
}

#[kernel(op = "LeakyReluGrad", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for LeakyReluGrad<T> {
    type Platform = RefPlatform;

    fn new(construction: &Construction<'_>) -> Result<Self> {
        Ok(Self { alpha: construction.attr("alpha")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let f = f::leaky_relu_grad(alpha::<T>(self.alpha));
        binary::<T, T>(context, "LeakyReluGrad", wide2::<T>(f))
    }
}

/// One of two for each element, by a condition.
fn select<T: Stored>(context: &Run<'_>, op: &'static str, by_row: bool) -> Result<()> {
    let [condition, a, b] = [0, 1, 2].map(|index| context.input(index));
    let (condition, a, b) = (condition?, a?, b?);
    let (mut c_shape, a_shape, b_shape) = (shape(&condition)?, shape(&a)?, shape(&b)?);
    let both = match by_row {
        true if a_shape != b_shape => {
            return Err(wrong(format!("Incompatible shapes: {a_shape:?} vs. {b_shape:?}")));
        }
        true => {
            // A vector chooses rows.
            if c_shape.len() == 1 && a_shape.len() > 1 {
                c_shape.resize(a_shape.len(), 1);
            }
            if !shapes::broadcasts_to(&c_shape, &a_shape) {
                return Err(wrong(format!("Incompatible shapes: {c_shape:?} vs. {a_shape:?}")));
            }
            a_shape.clone()
        }
        false => shapes::broadcast(&c_shape, &shapes::broadcast(&a_shape, &b_shape)?)?,
    };
    let out = output(context, 0, &both)?;
    launch(context, op, [&condition, &a, &b], [&out], move |[condition, a, b], [out]| {
        let condition = view::<u8>(condition, &c_shape)?.mapv(|byte| byte != 0);
        let (a, b) = (view::<T::Bits>(a, &a_shape)?, view::<T::Bits>(b, &b_shape)?);
        elementwise::select(condition.view(), a, b, view_mut(out, &both)?);
        Ok(())
    })
}

kernels! {
    Stored [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
    "Select" Select = |run, op| select::<T>(run, op, true);
    "SelectV2" SelectV2 = |run, op| select::<T>(run, op, false);
}

/// An element as it lies in memory: `bool` as a byte.
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

            fn new(_: &Construction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                map::<<$from as Cell>::Pod, DstT::Pod>(context, "Cast", |x| {
                    CastTo::<DstT>::cast(<$from>::load(x)).store()
                })
            }
        }
    )*};
}

casts!(f32 f64 f16 bf16 i8 i32 i64 u8 bool; [f32, f64, f16, bf16, i8, i32, i64, u8, bool]);
