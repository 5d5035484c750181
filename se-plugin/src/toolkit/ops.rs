//! Whole kernels for devices whose streams are [`WorkerStream`]s, such as [`HostDevice`](crate::host::HostDevice).
//!
//! Each function checks the inputs of an op, creates its output and enqueues the work. Inputs that do not fit are an
//! error of the op.

use super::loops::{self, elements, elements_mut};
use super::number::Number;
use super::shape::{self, reduced_shape, to_host};
use crate::device::Device;
use crate::host::{DeviceRange, WorkerStream};
use crate::kernel::{DeviceTensor, OpKernelContext};
use crate::platform::Platform;
use bytemuck::Pod;
use tf_op_plugin::toolkit::Broadcast;
use tf_plugin_core::{Error, Result};

/// A platform whose devices compute on the host, with [`WorkerStream`]s.
pub trait HostPlatform: Platform<Device: Device<Stream = WorkerStream>> {}
impl<P: Platform<Device: Device<Stream = WorkerStream>>> HostPlatform for P {}

/// Creates an output of this shape.
///
/// # Errors
/// As [`OpKernelContext::output`].
pub fn output<P: Platform>(
    context: &OpKernelContext<'_, P>,
    index: usize,
    shape: &[usize],
) -> Result<DeviceTensor> {
    context.output(index, &to_host(shape))
}

/// Returns the inputs of an argument that is a list.
///
/// # Errors
/// As [`OpKernelContext::input_range`].
pub fn inputs<P: Platform>(
    context: &OpKernelContext<'_, P>,
    name: &str,
) -> Result<Vec<DeviceTensor>> {
    context.input_range(name)?.map(|index| context.input(index)).collect()
}

/// Enqueues work on tensors, which gets their bytes when it runs.
///
/// # Errors
/// As [`WorkerStream::launch`].
pub fn launch<P: HostPlatform, const R: usize, const W: usize>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    reads: [&DeviceTensor; R],
    writes: [&DeviceTensor; W],
    work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
) -> Result<()> {
    let (reads, writes) = (reads.map(DeviceRange::from), writes.map(DeviceRange::from));
    context.stream().launch(op, reads, writes, work)
}

/// Enqueues work on lists of tensors.
///
/// # Errors
/// As [`WorkerStream::launch_lists`].
pub fn launch_lists<P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    reads: &[DeviceTensor],
    writes: &[DeviceTensor],
    work: impl FnOnce(Vec<&[u8]>, Vec<&mut [u8]>) -> Result<()> + Send + 'static,
) -> Result<()> {
    let ranges = |tensors: &[DeviceTensor]| tensors.iter().map(DeviceRange::from).collect();
    context.stream().launch_lists(op, ranges(reads), ranges(writes), work)
}

/// Runs work on tensors and waits for it, so that its error is the op's.
///
/// # Errors
/// As [`WorkerStream::run`].
pub fn run<P: HostPlatform, const R: usize, const W: usize>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    reads: [&DeviceTensor; R],
    writes: [&DeviceTensor; W],
    work: impl FnOnce([&[u8]; R], [&mut [u8]; W]) -> Result<()> + Send + 'static,
) -> Result<()> {
    let (reads, writes) = (reads.map(DeviceRange::from), writes.map(DeviceRange::from));
    context.stream().run(op, reads, writes, work)
}

/// Work that computes an output from inputs. It knows the type of their elements.
type Work = dyn FnOnce(&[&[u8]], &mut [u8]) -> Result<()> + Send;

/// Runs `work` on the input. If nothing else uses the input, the output is in its memory, and `work` gets no inputs.
/// Not generic in the elements, like the functions below: a device has hundreds of ops with their types.
fn in_place<P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    work: Box<Work>,
) -> Result<()> {
    // Not kept: a value that holds the input counts as one of its users.
    let shape = context.input(0)?.shape().to_vec();
    let (out, forwarded) = context.forward_or_output(&[0], 0, &shape)?;
    if forwarded.is_some() {
        return launch(context, op, [], [&out], move |[], [out]| work(&[], out));
    }
    let x = context.input(0)?;
    launch(context, op, [&x], [&out], move |[x], [out]| work(&[x], out))
}

/// Runs `work` on the input, for an output of its shape.
fn same_shape<P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    work: Box<Work>,
) -> Result<()> {
    let x = context.input(0)?;
    let out = context.output(0, x.shape())?;
    launch(context, op, [&x], [&out], move |[x], [out]| work(&[x], out))
}

/// Creates the output of an elementwise op with two inputs, in the memory of one that has its shape and type and that
/// nothing else uses. Returns that input, too.
///
/// For kernels that read each element of that input before they write it. TensorFlow's collective ops require this of
/// `Add` and others: they take the sum from the memory of the first input.
///
/// # Errors
/// As [`OpKernelContext::forward_or_output`].
pub fn forward_one_of_two<P: Platform>(
    context: &OpKernelContext<'_, P>,
    broadcast: &Broadcast<2>,
) -> Result<(DeviceTensor, Option<usize>)> {
    let shape = to_host(broadcast.shape());
    let (mut candidates, dtype) = (Vec::new(), context.output_dtype(0)?);
    for index in [0, 1] {
        if context.input_dtype(index)? == dtype && context.input(index)?.shape() == shape {
            candidates.push(index);
        }
    }
    context.forward_or_output(&candidates, 0, &shape)
}

/// Work that computes an output from two inputs that are broadcast. `None` is an input in the memory of the output.
type Work2 = dyn FnOnce([Option<&[u8]>; 2], &mut [u8], &Broadcast<2>) -> Result<()> + Send;

/// Runs `work` on two inputs, in the memory of one if it can. With `waits`, an error of the work is that of the op.
fn both<P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    waits: bool,
    work: Box<Work2>,
) -> Result<()> {
    let broadcast =
        Broadcast::new([&shape::of(&context.input(0)?)?, &shape::of(&context.input(1)?)?])?;
    let (out, forwarded) = forward_one_of_two(context, &broadcast)?;
    let others: Vec<_> = [0, 1].into_iter().filter(|index| forwarded != Some(*index)).collect();
    let reads = others.iter().map(|&index| context.input(index)).collect::<Result<Vec<_>>>()?;
    let ranges = |tensors: &[DeviceTensor]| tensors.iter().map(DeviceRange::from).collect();
    let work = move |reads: Vec<&[u8]>, mut writes: Vec<&mut [u8]>| {
        let mut ins = [None; 2];
        for (index, read) in others.into_iter().zip(reads) {
            ins[index] = Some(read);
        }
        work(ins, writes[0], &broadcast)
    };
    context.stream().start(op, ranges(&reads), ranges(&[out]), waits, Box::new(work))
}

/// Computes `f` of each pair of elements. An input that is `None` is in the output.
fn zip<A: Pod, B: Pod>(
    ins: [Option<&[u8]>; 2],
    out: &mut [u8],
    broadcast: &Broadcast<2>,
    f: impl Fn(A, A) -> B,
) -> Result<()> {
    // An output in the memory of an input has its type: `A` and `B` are one.
    let own = bytemuck::cast::<B, A>;
    match ins {
        [Some(a), Some(b)] => {
            loops::zip(elements::<A>(a)?, elements(b)?, elements_mut::<B>(out)?, broadcast, f);
        }
        [None, Some(b)] if b.len() == out.len() => {
            loops::update(elements_mut(out)?, elements(b)?, |a, b| own(f(a, b)));
        }
        [Some(a), None] if a.len() == out.len() => {
            loops::update(elements_mut(out)?, elements(a)?, |b, a| own(f(a, b)));
        }
        // The other input is repeated.
        [a, b] => {
            let own = elements::<A>(out)?.to_vec();
            let [a, b] = [a, b].map(|input| input.map(elements::<A>).transpose());
            let (a, b) = (a?.unwrap_or(&own), b?.unwrap_or(&own));
            loops::zip(a, b, elements_mut::<B>(out)?, broadcast, f);
        }
    }
    Ok(())
}

/// Computes `f` of each element, in the memory of the input if nothing else uses it.
///
/// # Errors
/// As [`OpKernelContext::forward_or_output`].
pub fn unary<T: Pod, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    f: impl Fn(T) -> T + Send + 'static,
) -> Result<()> {
    let work = move |x: &[&[u8]], out: &mut [u8]| {
        let out = elements_mut::<T>(out)?;
        match x {
            [] => loops::map_in_place(out, f),
            [x, ..] => loops::map(elements::<T>(x)?, out, f),
        }
        Ok(())
    };
    in_place(context, op, Box::new(work))
}

/// Computes `f` of each element, with a result of another type. A bool is a `u8`, 0 or 1.
///
/// # Errors
/// As [`OpKernelContext::output`].
pub fn map<A: Pod, B: Pod, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    f: impl Fn(A) -> B + Send + 'static,
) -> Result<()> {
    let work = move |x: &[&[u8]], out: &mut [u8]| {
        loops::map(elements::<A>(x[0])?, elements_mut::<B>(out)?, f);
        Ok(())
    };
    same_shape(context, op, Box::new(work))
}

/// Computes `f` of each pair of elements of the two inputs, which are broadcast, in the memory of one that has
/// the shape and type of the output and that nothing else uses.
///
/// # Errors
/// `INVALID_ARGUMENT` for shapes that do not broadcast.
pub fn binary<A: Pod, B: Pod, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    f: impl Fn(A, A) -> B + Send + 'static,
) -> Result<()> {
    both(
        context,
        op,
        false,
        Box::new(move |ins, out, broadcast| zip::<A, B>(ins, out, broadcast, f)),
    )
}

/// Computes `f` of each pair of elements as [`binary`] does. The second element must not be 0.
///
/// # Errors
/// `INVALID_ARGUMENT` for a divisor of 0, and for shapes that do not broadcast.
pub fn divide<T: Number, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    f: fn(T, T) -> T,
) -> Result<()> {
    let work = move |ins: [Option<&[u8]>; 2], out: &mut [u8], broadcast: &Broadcast<2>| {
        if !out.is_empty() && elements::<T>(ins[1].unwrap_or(out))?.contains(&T::ZERO) {
            return Err(Error::invalid_argument("Integer division by zero"));
        }
        zip(ins, out, broadcast, f)
    };
    both(context, op, true, Box::new(work))
}

/// Computes the sum of the inputs of `AddN`.
///
/// # Errors
/// `INVALID_ARGUMENT` for shapes that differ.
pub fn add_all<T: Number, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
) -> Result<()> {
    let parts = inputs(context, "inputs")?;
    let first = parts.first().ok_or_else(|| Error::invalid_argument("there is nothing to add"))?;
    if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
        let (one, other) = (first.shape(), other.shape());
        return Err(Error::invalid_argument(format!(
            "Inputs to operation {op} must have the same size and shape: {one:?} != {other:?}"
        )));
    }
    let out = context.output(0, first.shape())?;
    launch_lists(context, op, &parts, &[out], move |parts, mut outs| {
        let out = elements_mut::<T>(outs[0])?;
        out.copy_from_slice(elements(parts[0])?);
        for part in &parts[1..] {
            loops::update(out, elements::<T>(part)?, T::plus);
        }
        Ok(())
    })
}

/// Folds the elements of the first input along the axes in the second, which is in host memory. It does so as
/// [`loops::reduce`], except that `finish` also gets the number of elements for each result.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such axis.
pub fn reduce<T: Pod, A: Copy + Send + 'static, B: Pod, P: HostPlatform>(
    context: &OpKernelContext<'_, P>,
    op: &'static str,
    keep_dims: bool,
    start: A,
    step: impl Fn(A, T) -> A + Send + 'static,
    finish: impl Fn(A, usize) -> B + Send + 'static,
) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape::of(&input)?;
    let axes = shape::axes(&context.host_integers(1)?, shape.len())?;
    let out = output(context, 0, &reduced_shape(&shape, &axes, keep_dims))?;
    let count = axes.iter().map(|&axis| shape[axis]).product();
    launch(context, op, [&input], [&out], move |[input], [out]| {
        let (input, out) = (elements::<T>(input)?, elements_mut::<B>(out)?);
        loops::reduce(input, &shape, &axes, out, start, step, |sum| finish(sum, count))
    })
}
