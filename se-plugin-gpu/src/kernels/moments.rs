//! Mean and variance, and the gradient of batch normalization by them, which [`Fusion`](crate::fusion::Fusion) finds in a graph.
//!
//! They are of all elements with the same indices along the axes after the first `axes` ones: the channels.

use super::data_format::Layout;
use super::normalize::{BatchNorm, Op};
use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;
use se_plugin::toolkit::shape::to_host;

/// From `x` to the mean and the variance of each channel, with 1 for each of the first axes.
pub(crate) const MOMENTS: &str = "RustGpuMoments";

/// The gradients of `(x - mean) / sqrt(variance + epsilon) * scale + offset`, where mean and variance are those of `x`.
pub(crate) const GRADIENT: &str = "RustGpuBatchNormGrad";

struct Moments;

impl OpDefinition for Moments {
    const NAME: &'static str = MOMENTS;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("T: {half, bfloat16, float}")
            .attribute("axes: int >= 1")
            .input("x: T")
            .output("mean: float")
            .output("variance: float");
    }
}
register_op!(Moments);

struct Gradient;

impl OpDefinition for Gradient {
    const NAME: &'static str = GRADIENT;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("T: {half, bfloat16, float}")
            .attribute("axes: int >= 1")
            .attribute("epsilon: float")
            .attribute("keep_dims: bool")
            .attribute("N: int >= 0")
            .input("x: T")
            .input("y_backprop: T")
            .input("mean: float")
            .input("variance: float")
            // None is 1.
            .input("scale: N * float")
            .output("x_backprop: T")
            // In the shape of the variance and the scale, broadcast.
            .output("scale_backprop: float")
            // As a sum with `keep_dims`.
            .output("offset_backprop: float");
    }
}
register_op!(Gradient);

kernels! {
    types (T = [f32, f16, bf16])
    "RustGpuMoments" MomentsOf [usize = axes] () = |run, op, axes| moments(run, op, *axes);
    "RustGpuBatchNormGrad" BatchNormGrad [Attributes = Attributes::new] () =
        |run, op, attributes| attributes.compute(run, op);
}

/// Reads the number of axes.
fn axes(construction: &OpKernelConstruction<'_>) -> Result<usize> {
    let axes = construction.attr::<i64>("axes")?;
    usize::try_from(axes).map_err(|_| wrong(format!("axes is negative: {axes}")))
}

/// Returns the shape of the channels of a tensor.
fn channels(shape: &[usize], axes: usize) -> Result<&[usize]> {
    let channels = shape.get(axes..);
    channels.ok_or_else(|| wrong(format!("x must have {axes} axes or more, and not {shape:?}")))
}

/// Returns the shape of a sum over the first axes.
fn kept(channels: &[usize], axes: usize) -> Vec<usize> {
    [&vec![1; axes][..], channels].concat()
}

fn norm(epsilon: f32, has_scale: bool) -> BatchNorm {
    BatchNorm { layout: Layout::Last, epsilon, is_training: true, factor: 1.0, has_scale }
}

fn moments(context: &Run<'_>, op: &'static str, axes: usize) -> Result<()> {
    let x = context.input(0)?;
    let shape = shape(&x)?;
    let kept = kept(channels(&shape, axes)?, axes);
    let (mean, variance) = (output(context, 0, &kept)?, output(context, 1, &kept)?);
    if mean.is_empty() {
        return Ok(());
    }
    // The shader has the places of all tensors of batch normalization.
    let all = [&x, &mean, &mean, &mean, &mean, &x, &mean, &variance, &mean, &mean];
    let operands = all.map(Operand::from);
    norm(0.0, false).enqueue(context, op, Op::Moments, &x, mean.len(), &operands)
}

/// The attributes of the gradient.
struct Attributes {
    axes: usize,
    epsilon: f32,
    keep_dims: bool,
    has_scale: bool,
}

impl Attributes {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let scales = construction.attr::<i64>("N")?;
        ensure!(scales <= 1, wrong(format!("N is {scales} and not at most 1")));
        Ok(Self {
            axes: axes(construction)?,
            epsilon: construction.attr("epsilon")?,
            keep_dims: construction.attr("keep_dims")?,
            has_scale: scales == 1,
        })
    }

    fn compute(&self, context: &Run<'_>, op: &'static str) -> Result<()> {
        let [x, dy, mean, variance] = [0, 1, 2, 3].map(|at| context.input(at));
        let (x, dy, mean, variance) = (x?, dy?, mean?, variance?);
        let shape = shape(&x)?;
        let rest = channels(&shape, self.axes)?;
        let n_channels = rest.iter().product();
        ensure!(
            dy.shape() == x.shape() && [mean.len(), variance.len()] == [n_channels; 2],
            wrong(format!(
                "x, its gradient, mean and variance do not fit: {:?} {:?} {:?} {:?}",
                x.shape(),
                dy.shape(),
                mean.shape(),
                variance.shape()
            ))
        );
        let scale = if self.has_scale { context.input(4)? } else { variance.clone() };
        let scale_shape = self::shape(&scale)?;
        let scale_shape = shapes::broadcast_shape(&self::shape(&variance)?, &scale_shape)?;
        let scale = of_each_channel(context, op, scale, n_channels)?;
        let dx = context.output(0, x.shape())?;
        let dscale = output(context, 1, &scale_shape)?;
        let offset_shape = if self.keep_dims { kept(rest, self.axes) } else { rest.to_vec() };
        let doffset = output(context, 2, &offset_shape)?;
        if n_channels == 0 {
            return Ok(());
        }
        let rows = [&scale, &mean, &variance];
        norm(self.epsilon, self.has_scale).slopes(
            context,
            op,
            [&x, &dy],
            rows,
            [&dx, &dscale, &doffset],
        )
    }
}

/// Returns a number for each channel: the tensor, or its only element for all of them.
fn of_each_channel(
    context: &Run<'_>,
    op: &'static str,
    scale: DeviceTensor,
    channels: usize,
) -> Result<DeviceTensor> {
    if scale.len() == channels {
        return Ok(scale);
    }
    let shape = scale.shape();
    ensure!(scale.len() == 1, wrong(format!("{shape:?} is not a scale of {channels} channels")));
    let all = context.temporary(scale.dtype(), &to_host(&[channels]))?;
    let walk = strided_copy::Walk::new(&[channels], &[0], &[1]);
    walk.enqueue(context, op, (&scale).into(), &all)?;
    Ok(all)
}
