//! Mean and variance, and the gradients of batch, layer and group normalization by them, which [`Fusion`](crate::fusion::Fusion) finds in a graph.
//!
//! Of batch normalization they are of all elements with the same indices along the axes after the first `axes` ones: the channels.
//! Of layer normalization they are of all elements along the last axis: the rows. Of group normalization they are of all elements
//! with the same indices along the first and the next-to-last axis: the groups of images.

use super::normalize::{BatchNorm, Op};
use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;
use se_plugin::toolkit::shape::to_host;

/// From `x` to the mean and the variance of each channel, with 1 for each of the first axes; if `axes` is -1, of each row, and
/// if it is -2, of each group. With averages of
/// both, new ones: the old ones times `rest`, and mean and variance times `factor`. With a bias, averages are those of `x`
/// plus the bias of the channel, and so is `mean_of_sum`.
pub(crate) const MOMENTS: &str = "RustGpuMoments";

/// The gradients of `(x - mean) / sqrt(variance + epsilon) * scale + offset`, where mean and variance are those of `x`. A bias that `x`
/// is the sum with changes nothing, so its gradient is 0, and NaN where a sum of `y_backprop` is not finite.
pub(crate) const BATCH_GRADIENT: &str = "RustGpuBatchNormGrad";

/// The same where mean and variance are those of rows, of which there are `axes` axes.
pub(crate) const LAYER_GRADIENT: &str = "RustGpuLayerNormGrad";

/// The same where mean and variance are those of groups. There are `axes` axes between images and groups.
pub(crate) const GROUP_GRADIENT: &str = "RustGpuGroupNormGrad";

struct Moments;

impl OpDefinition for Moments {
    const NAME: &'static str = MOMENTS;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("T: {half, bfloat16, float}")
            .attribute("axes: int >= -2")
            .attribute("N: int >= 0")
            .attribute("B: int >= 0")
            .attribute("rest: float")
            .attribute("factor: float")
            .input("x: T")
            .input("averages: N * float")
            .input("bias: B * T")
            .output("mean: float")
            .output("variance: float")
            .output("new_averages: N * float")
            .output("mean_of_sum: B * float");
    }
}
register_op!(Moments);

struct BatchGradient;

impl OpDefinition for BatchGradient {
    const NAME: &'static str = BATCH_GRADIENT;

    fn define(op: &mut OpDefinitionBuilder) {
        define_gradient(op);
        op.attribute("B: int >= 0").output("bias_backprop: B * T");
    }
}
register_op!(BatchGradient);

struct LayerGradient;

impl OpDefinition for LayerGradient {
    const NAME: &'static str = LAYER_GRADIENT;

    fn define(op: &mut OpDefinitionBuilder) {
        define_gradient(op);
    }
}
register_op!(LayerGradient);

struct GroupGradient;

impl OpDefinition for GroupGradient {
    const NAME: &'static str = GROUP_GRADIENT;

    fn define(op: &mut OpDefinitionBuilder) {
        define_gradient(op);
    }
}
register_op!(GroupGradient);

fn define_gradient(op: &mut OpDefinitionBuilder) {
    op.attribute("T: {half, bfloat16, float}")
        .attribute("axes: int >= 1")
        .attribute("epsilon: float")
        // Of the sums that the last outputs are: for a batch that of the offset, otherwise of both.
        .attribute("keep_dims: list(bool) >= 1")
        .attribute("N: int >= 0")
        .input("x: T")
        .input("y_backprop: T")
        .input("mean: float")
        .input("variance: float")
        // None is 1.
        .input("scale: N * float")
        .output("x_backprop: T")
        // For a batch in the shape of variance and scale, broadcast.
        .output("scale_backprop: float")
        .output("offset_backprop: float");
}

kernels! {
    types (T = [f32, f16, bf16])
    "RustGpuMoments" MomentsOf [Averages = Averages::new] () = |run, op, averages| match averages.axes {
        Means::Channels(axes) => averages.moments(run, op, axes),
        Means::Rows => layer_norm::moments(run, op),
        Means::Groups => group_norm::moments(run, op),
    };
    "RustGpuBatchNormGrad" BatchNormGrad [Attributes = Attributes::new] () =
        |run, op, attributes| attributes.compute(run, op);
    "RustGpuLayerNormGrad" LayerNormGrad [Attributes = Attributes::new] () =
        |run, op, attributes| layer_norm::gradient(run, op, attributes);
    "RustGpuGroupNormGrad" GroupNormGrad [Attributes = Attributes::new] () =
        |run, op, attributes| group_norm::gradient(run, op, attributes);
}

/// The axes that the attribute of the moments names.
enum Means {
    /// This many, from the first on.
    Channels(usize),
    Rows,
    Groups,
}

impl Means {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(match construction.attr::<i64>("axes")? {
            -2 => Self::Groups,
            -1 => Self::Rows,
            axes => Self::Channels(usize::try_from(axes).map_err(|_| wrong("axes is below -2"))?),
        })
    }
}

/// Returns the shape of the channels of a tensor.
fn channels(shape: &[usize], axes: usize) -> Result<&[usize]> {
    let channels = shape.get(axes..);
    channels.ok_or_else(|| wrong(format!("x must have {axes} axes or more, and not {shape:?}")))
}

/// Returns the shape of a sum over the first axes.
pub(super) fn kept(channels: &[usize], axes: usize) -> Vec<usize> {
    [&vec![1; axes][..], channels].concat()
}

fn norm(epsilon: f32, has_scale: bool) -> BatchNorm {
    BatchNorm { epsilon, has_scale, ..BatchNorm::of_training() }
}

/// Reads whether there is a bias, which layers do not have.
fn has_bias(construction: &OpKernelConstruction<'_>) -> Result<bool> {
    if !construction.has_attr("B")? {
        return Ok(false);
    }
    let biases = construction.attr::<i64>("B")?;
    ensure!((0..=1).contains(&biases), wrong(format!("B is {biases} and not 0 or 1")));
    Ok(biases == 1)
}

/// The attributes of the moments.
struct Averages {
    axes: Means,
    /// Whether there are averages.
    has: bool,
    has_bias: bool,
    rest: f32,
    factor: f32,
}

impl Averages {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let axes = Means::new(construction)?;
        let is_of_channels = matches!(axes, Means::Channels(_));
        let count = construction.attr::<i64>("N")?;
        ensure!(
            count == 0 || count == 2 && is_of_channels,
            wrong(format!("N is {count} and not 0 or 2, and 0 for rows and groups"))
        );
        let has_bias = has_bias(construction)?;
        ensure!(!has_bias || is_of_channels, wrong("B is 1 and not 0, as for rows and groups"));
        Ok(Self {
            axes,
            has: count == 2,
            has_bias,
            rest: construction.attr("rest")?,
            factor: construction.attr("factor")?,
        })
    }

    fn moments(&self, context: &Run<'_>, op: &'static str, axes: usize) -> Result<()> {
        let x = context.input(0)?;
        let shape = shape(&x)?;
        let kept = kept(channels(&shape, axes)?, axes);
        let (mean, variance) = (output(context, 0, &kept)?, output(context, 1, &kept)?);
        let average = |number: usize| -> Result<_> {
            if !self.has {
                return Ok((mean.clone(), mean.clone()));
            }
            let old = context.input(1 + number)?;
            let fits = old.len() == mean.len();
            ensure!(fits, unfit(op, &[("average", &old), ("mean", &mean)], "each other"));
            Ok((old.clone(), context.output(2 + number, old.shape())?))
        };
        let ((old_mean, new_mean), (old_variance, new_variance)) = (average(0)?, average(1)?);
        let (mut bias, mut mean_of_sum) = (mean.clone(), mean.clone());
        if self.has_bias {
            let averages = if self.has { 2 } else { 0 };
            bias = context.input(1 + averages)?;
            ensure!(
                bias.len() == mean.len(),
                unfit(op, &[("bias", &bias), ("mean", &mean)], "each other")
            );
            mean_of_sum = output(context, 2 + averages, &kept)?;
        }
        if mean.is_empty() {
            return Ok(());
        }
        // The shader has the places of all tensors of batch normalization: scale is the bias, and `y` the mean with it.
        let all = [&x, &bias, &mean, &old_mean, &old_variance, &mean_of_sum];
        let outputs = [&mean, &variance, &new_mean, &new_variance];
        let operands: Vec<_> = all.into_iter().chain(outputs).map(Operand::from).collect();
        let norm = BatchNorm {
            epsilon: self.rest,
            factor: self.factor,
            has_averages: self.has,
            has_scale: self.has_bias,
            ..BatchNorm::of_training()
        };
        norm.enqueue(context, op, Op::Moments, &x, mean.len(), &operands)
    }
}

/// The attributes of the gradients.
pub(super) struct Attributes {
    pub(super) axes: usize,
    pub(super) epsilon: f32,
    /// Of the gradients of scale and offset.
    pub(super) keep_dims: [bool; 2],
    pub(super) has_scale: bool,
    has_bias: bool,
}

impl Attributes {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let scales = construction.attr::<i64>("N")?;
        ensure!(scales <= 1, wrong(format!("N is {scales} and not at most 1")));
        let keep_dims = match construction.attr::<Vec<bool>>("keep_dims")?[..] {
            [both] => [both; 2],
            [scale, offset] => [scale, offset],
            _ => return Err(wrong("keep_dims does not have one element or two")),
        };
        Ok(Self {
            axes: usize::try_from(construction.attr::<i64>("axes")?)
                .map_err(|_| wrong("axes is negative"))?,
            epsilon: construction.attr("epsilon")?,
            keep_dims,
            has_scale: scales == 1,
            has_bias: has_bias(construction)?,
        })
    }

    fn compute(&self, context: &Run<'_>, op: &'static str) -> Result<()> {
        let [x, dy, mean, variance] = [0, 1, 2, 3].map(|at| context.input(at));
        let (x, dy, mean, variance) = (x?, dy?, mean?, variance?);
        let shape = shape(&x)?;
        let rest = channels(&shape, self.axes)?;
        let n_channels: usize = rest.iter().product();
        ensure!(
            dy.shape() == x.shape() && [mean.len(), variance.len()] == [n_channels; 2],
            unfit(
                op,
                &[("x", &x), ("y_backprop", &dy), ("mean", &mean), ("variance", &variance)],
                format!("{} axes", self.axes)
            )
        );
        let scale = if self.has_scale { context.input(4)? } else { variance.clone() };
        let scale_shape = self::shape(&scale)?;
        let scale_shape = shapes::broadcast_shape(&self::shape(&variance)?, &scale_shape)?;
        let scale = of_each_channel(context, op, scale, rest)?;
        let dx = context.output(0, x.shape())?;
        let dscale = output(context, 1, &scale_shape)?;
        let offset_shape = if self.keep_dims[1] { kept(rest, self.axes) } else { rest.to_vec() };
        let doffset = output(context, 2, &offset_shape)?;
        let dbias = if self.has_bias { output(context, 3, rest)? } else { dx.clone() };
        if n_channels == 0 {
            return Ok(());
        }
        let rows = [&scale, &mean, &variance];
        let norm = BatchNorm { has_averages: self.has_bias, ..norm(self.epsilon, self.has_scale) };
        norm.slopes(context, op, [&x, &dy], rows, [&dx, &dscale, &doffset, &dbias])
    }
}

/// Returns a number for each channel: the tensor, broadcast to their shape.
pub(super) fn of_each_channel(
    context: &Run<'_>,
    op: &'static str,
    scale: DeviceTensor,
    channels: &[usize],
) -> Result<DeviceTensor> {
    if scale.len() == channels.iter().product::<usize>() {
        return Ok(scale);
    }
    let shape = shape(&scale)?;
    // Axes before those of the channels have the size 1.
    let own = &shape[shape.len().saturating_sub(channels.len())..];
    let fits = shapes::broadcast_shape(own, channels).is_ok_and(|all| all[..] == *channels)
        && own.iter().product::<usize>() == scale.len();
    ensure!(fits, unfit(op, &[("scale", &scale)], format!("the channels {channels:?}")));
    let all = context.temporary(scale.dtype(), &to_host(channels))?;
    let steps = strided_copy::broadcast(own, channels.len());
    let walk = strided_copy::Walk::new(channels, &steps, &strided_copy::strides(channels));
    walk.enqueue(context, op, (&scale).into(), &all)?;
    Ok(all)
}

/// The error of tensors whose shapes do not fit. The user did not write the op, so the text says where it comes from.
#[cold]
pub(super) fn unfit(op: &str, tensors: &[(&str, &DeviceTensor)], to: impl AsRef<str>) -> Error {
    let shapes: Vec<_> =
        tensors.iter().map(|(name, tensor)| format!("{name} {:?}", tensor.shape())).collect();
    wrong(format!(
        "{op}, which replaces other ops of the graph: the shapes {} do not fit {}; RUST_GPU_FUSE=0 leaves it as it is",
        shapes.join(", "),
        to.as_ref()
    ))
}
