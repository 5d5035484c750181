//! Kernels. They check shapes on the caller's thread and enqueue the work into the stream.

mod band;
mod cast;
mod concat;
mod convolve;
mod einsum;
mod elementwise;
mod fill;
mod gather;
mod matrix;
mod optimize;
mod pack;
mod pool;
mod range;
mod reduce;
mod segment;
mod slice;
mod softmax;
mod split;
mod tile;
mod transpose;
mod variants;

use crate::device::RefPlatform;
use crate::math::{Real, View, ViewMut};
use bytemuck::Pod;
use half::{bf16, f16};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, IxDyn};
use se_plugin::prelude::*;
use se_plugin::toolkit::loops::{elements, elements_mut};
use se_plugin::toolkit::ops::{inputs, launch, launch_lists, output};
use se_plugin::toolkit::shape::{Shape, from_host, of as shape};
use se_plugin::toolkit::{Broadcast, Number, loops, ops, shape as shapes};

/// A run of a kernel.
type Run<'a> = OpKernelContext<'a, RefPlatform>;

/// An element whose bytes can be moved.
trait Stored: Element {
    /// The unsigned integer of the same size, for which all bytes are valid.
    type Bits: Pod + Send + Sync;
    /// Returns the bits of the element.
    fn bits(self) -> Self::Bits;
}

macro_rules! stored {
    ($($element:ty => $bits:ty, $convert:expr;)*) => {$(
        impl Stored for $element {
            type Bits = $bits;
            fn bits(self) -> $bits {
                $convert(self)
            }
        }
    )*};
}

stored! {
    f32 => u32, f32::to_bits;
    f64 => u64, f64::to_bits;
    f16 => u16, f16::to_bits;
    bf16 => u16, bf16::to_bits;
    i8 => u8, |x: i8| x as u8;
    i16 => u16, |x: i16| x as u16;
    i32 => u32, |x: i32| x as u32;
    i64 => u64, |x: i64| x as u64;
    u8 => u8, |x| x;
    u16 => u16, |x| x;
    u32 => u32, |x| x;
    u64 => u64, |x| x;
    bool => u8, u8::from;
}

/// An element with its type in memory, which is a byte for `bool`.
trait Cell: Element {
    type Pod: Pod + PartialEq;
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
cells!(f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64);
impl Cell for bool {
    type Pod = u8;
    fn load(pod: u8) -> Self {
        pod != 0
    }
    fn store(self) -> u8 {
        self.into()
    }
}

/// An element that can be computed with.
trait Numeric: Stored + Number {}
impl<T: Stored + Number> Numeric for T {}

/// A float that can be computed with.
trait Floating: Numeric + Real {}
impl<T: Numeric + Real> Floating for T {}

/// Views bytes as a tensor.
fn view<'a, T: Pod>(bytes: &'a [u8], shape: &[usize]) -> Result<View<'a, T>> {
    ArrayView::from_shape(IxDyn(shape), elements(bytes)?).map_err(Error::internal)
}

/// Views bytes as a tensor to write to.
fn view_mut<'a, T: Pod>(bytes: &'a mut [u8], shape: &[usize]) -> Result<ViewMut<'a, T>> {
    ArrayViewMut::from_shape(IxDyn(shape), elements_mut(bytes)?).map_err(Error::internal)
}

/// Reads a scalar from its bytes.
fn scalar<T: Pod>(bytes: &[u8]) -> Result<T> {
    bytemuck::try_pod_read_unaligned(bytes).map_err(Error::internal)
}

#[cold]
fn wrong(text: impl Into<String>) -> Error {
    Error::invalid_argument(text.into())
}

/// Returns the only element of a host input.
fn host_integer(context: &Run<'_>, index: usize) -> Result<i64> {
    match context.host_integers(index)?[..] {
        [only] => Ok(only),
        _ => Err(wrong(format!("input {index} must be a scalar"))),
    }
}

/// Returns a host input as a shape.
fn host_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    from_host(&context.host_integers(index)?)
}

/// Reads indices as a tensor of this shape. They are int32 if `is_small`, and int64 otherwise.
fn indices(bytes: &[u8], is_small: bool, shape: &[usize]) -> Result<ArrayD<i64>> {
    Ok(match is_small {
        true => view::<i32>(bytes, shape)?.mapv(i64::from),
        false => view::<i64>(bytes, shape)?.to_owned(),
    })
}

#[cold]
fn too_large() -> Error {
    wrong("the output would have more elements than a number can count")
}

/// Returns the shape of input `index`.
fn input_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    shape(&context.input(index)?)
}

/// Moves the elements of input `index` to an output of this shape.
fn rearrange<B: Pod>(
    context: &Run<'_>,
    op: &'static str,
    index: usize,
    out_shape: Shape,
    work: impl FnOnce(View<'_, B>, ViewMut<'_, B>) + Send + 'static,
) -> Result<()> {
    let input = context.input(index)?;
    let shape = shape(&input)?;
    let out = output(context, 0, &out_shape)?;
    launch(context, op, [&input], [&out], move |[input], [out]| {
        work(view(input, &shape)?, view_mut(out, &out_shape)?);
        Ok(())
    })
}

/// Kernels that read no attribute, for types `T` with this bound: `$body` gets the run and the name of the op. `index`
/// names attributes for int32 or int64, `host` the arguments in host memory.
macro_rules! kernels {
    ($($bound:ident $types:tt $(
        $op:literal $name:ident $(index($($index:ident),+))? $(host $host:tt)? = $body:expr;
    )+)+) => {$($(
        struct $name<T>(core::marker::PhantomData<T>);

        #[kernel(
            op = $op,
            types(T = $types $($(, $index = [i32, i64])+)?)
            $(, host_memory $host)?
        )]
        impl<T: $bound> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(core::marker::PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
                body(context, $op)
            }
        }
    )+)+};
}
use kernels;

/// Kernels without type attributes. `$options` are those of `#[kernel]`; `$body` gets the run and the name of the op.
macro_rules! untyped {
    ($($op:literal $name:ident ($($options:tt)*) = $body:expr;)*) => {$(
        struct $name;

        #[kernel(op = $op, $($options)*)]
        impl Kernel for $name {
            type Platform = RefPlatform;

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
use untyped;
