//! Kernels: shapes are checked on the caller's thread, and the work goes to the stream.

mod arrange;
mod convolve;
mod elementwise;
mod matrix;
mod normalize;
mod optimize;
mod pool;
mod reduce;
mod softmax;

use crate::device::RefPlatform;
use crate::math::number::{Number, Real};
use crate::math::shape::{Shape, from_host, to_host};
use crate::math::{View, ViewMut};
use bytemuck::Pod;
use half::{bf16, f16};
use ndarray::{ArrayView, ArrayViewMut, IxDyn};
use se_plugin::parts::DeviceRange;
use se_plugin::prelude::*;

/// A run of a kernel.
type Run<'a> = Context<'a, RefPlatform>;

/// An element whose bytes can be moved.
trait Stored: Element {
    /// As many bytes, any of which are valid.
    type Bits: Pod + Send + Sync;
    /// As bytes.
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

/// An element that can be computed with.
trait Numeric: Stored + Pod + Number {}
impl<T: Stored + Pod + Number> Numeric for T {}

/// A float that can be computed with.
trait Floating: Numeric + Real {}
impl<T: Numeric + Real> Floating for T {}

/// The shape of a tensor.
fn shape(tensor: &DeviceTensor) -> Result<Shape> {
    from_host(tensor.shape())
}

/// An output of this shape.
fn output(context: &Run<'_>, index: usize, shape: &[usize]) -> Result<DeviceTensor> {
    context.output(index, &to_host(shape))
}

/// Bytes as elements.
fn cells<T: Pod>(bytes: &[u8]) -> Result<&[T]> {
    bytemuck::try_cast_slice(bytes).map_err(Error::internal)
}

/// Bytes as elements to write to.
fn cells_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    bytemuck::try_cast_slice_mut(bytes).map_err(Error::internal)
}

/// Bytes as a tensor.
fn view<'a, T: Pod>(bytes: &'a [u8], shape: &[usize]) -> Result<View<'a, T>> {
    ArrayView::from_shape(IxDyn(shape), cells(bytes)?).map_err(Error::internal)
}

/// Bytes as a tensor to write to.
fn view_mut<'a, T: Pod>(bytes: &'a mut [u8], shape: &[usize]) -> Result<ViewMut<'a, T>> {
    ArrayViewMut::from_shape(IxDyn(shape), cells_mut(bytes)?).map_err(Error::internal)
}

/// Bytes as a scalar.
fn scalar<T: Pod>(bytes: &[u8]) -> Result<T> {
    bytemuck::try_pod_read_unaligned(bytes).map_err(Error::internal)
}

/// Enqueues the work of a kernel.
fn launch<const R: usize, const W: usize>(
    context: &Run<'_>,
    op: &'static str,
    reads: [&DeviceTensor; R],
    writes: [&DeviceTensor; W],
    work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
) -> Result<()> {
    let (reads, writes) = (reads.map(DeviceRange::from), writes.map(DeviceRange::from));
    context.stream().launch(op, reads, writes, work)
}

/// As [`launch`], for lists.
fn launch_lists(
    context: &Run<'_>,
    op: &'static str,
    reads: &[DeviceTensor],
    writes: &[DeviceTensor],
    work: impl FnOnce(Vec<&[u8]>, Vec<&mut [u8]>) -> Result<()> + Send + 'static,
) -> Result<()> {
    let ranges = |tensors: &[DeviceTensor]| tensors.iter().map(DeviceRange::from).collect();
    context.stream().launch_lists(op, ranges(reads), ranges(writes), work)
}

/// As [`launch`], but the kernel waits, and an error of the work is that of the operation.
fn run<const R: usize, const W: usize>(
    context: &Run<'_>,
    op: &'static str,
    reads: [&DeviceTensor; R],
    writes: [&DeviceTensor; W],
    work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
) -> Result<()> {
    let (reads, writes) = (reads.map(DeviceRange::from), writes.map(DeviceRange::from));
    context.stream().run(op, reads, writes, work)
}

/// The inputs of an argument that is a list.
fn inputs(context: &Run<'_>, name: &str) -> Result<Vec<DeviceTensor>> {
    context.input_range(name)?.map(|index| context.input(index)).collect()
}

#[cold]
fn wrong(text: impl Into<String>) -> Error {
    Error::invalid_argument(text.into())
}
