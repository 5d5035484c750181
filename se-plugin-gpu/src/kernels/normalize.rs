//! Batch normalization.

use super::data_format::Layout;
use super::*;
use crate::backend;

/// The attributes of both operations.
pub(super) struct BatchNorm {
    pub(super) layout: Layout,
    pub(super) epsilon: f32,
    pub(super) is_training: bool,
    /// The weight of the new values in the running mean and variance.
    pub(super) factor: f32,
    /// Whether there is a scale, which is 1 otherwise; of moments, whether there is a bias.
    pub(super) has_scale: bool,
    /// Whether there are averages of moments: `epsilon` times the old ones, and `factor` times the new. Of a gradient, whether there is that
    /// of a bias.
    pub(super) has_averages: bool,
    /// Of group normalization, whose sums are those of each image.
    pub(super) groups: Option<Groups>,
}

impl BatchNorm {
    /// Returns the attributes of training.
    pub(super) fn of_training() -> Self {
        Self {
            layout: Layout::Last,
            epsilon: 0.0,
            is_training: true,
            factor: 1.0,
            has_scale: true,
            has_averages: false,
            groups: None,
        }
    }

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let factor = match construction.has_attr("exponential_avg_factor")? {
            true => construction.attr("exponential_avg_factor")?,
            false => 1.0,
        };
        Ok(Self {
            layout: Layout::of(construction)?,
            epsilon: construction.attr("epsilon")?,
            is_training: construction.attr("is_training")?,
            factor,
            ..Self::of_training()
        })
    }

    /// Enqueues the stages of the shader with its operands, in their order.
    pub(super) fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: Op,
        x: &DeviceTensor,
        channels: usize,
        operands: &[Operand<'_>],
    ) -> Result<()> {
        self.enqueue_stages(context, op, number, x, channels, operands).map(drop)
    }

    /// Enqueues the first stage alone, for each image, and returns the sums with the elements of a part and the number of parts.
    pub(super) fn sums_of_images(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: Op,
        x: &DeviceTensor,
        channels: usize,
        operands: &[Operand<'_>],
    ) -> Result<(DeviceTensor, [u32; 2])> {
        let (stages, sums) = self.enqueue_stages(context, op, number, x, channels, operands)?;
        let sums = sums.ok_or_else(|| Error::internal("group normalization has no sums"))?;
        Ok((sums, [stages.part as u32, stages.groups[1]]))
    }

    fn enqueue_stages(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: Op,
        x: &DeviceTensor,
        channels: usize,
        operands: &[Operand<'_>],
    ) -> Result<(Stages, Option<DeviceTensor>)> {
        let stages = self.stages(number, x.dtype(), [x.len(), channels], operands)?;
        ensure_turns(context, op, stages.turns())?;
        word(stages.sums())?;
        let sums = match stages.sums() {
            0 => None,
            len => Some(context.temporary(DType::Float32, &[len as i64])?),
        };
        let mut operands = operands.to_vec();
        operands.push(sums.as_ref().map_or(Operand::Value(0), Operand::from));
        stages.each(op, &operands, |launch| launch.enqueue(context))?;
        Ok((stages, sums))
    }

    /// Enqueues a gradient: from `x` and `dy`, and scale, mean and variance of each channel, to the gradients of `x`, scale, offset and bias.
    pub(super) fn slopes(
        &self,
        context: &Run<'_>,
        op: &'static str,
        [x, dy]: [&DeviceTensor; 2],
        [scale, mean, variance]: [&DeviceTensor; 3],
        [dx, dscale, doffset, dbias]: [&DeviceTensor; 4],
    ) -> Result<()> {
        let all = [x, scale, dy, mean, variance, dx, dscale, doffset, dbias, dx];
        self.enqueue(context, op, Op::Gradient, x, mean.len(), &all.map(Operand::from))
    }

    /// Plans the stages for `len` elements and `channels`.
    pub(super) fn stages(
        &self,
        number: Op,
        dtype: DType,
        [len, channels]: [usize; 2],
        operands: &[Operand<'_>],
    ) -> Result<Stages> {
        word(len)?;
        let has_sums = number != Op::Normalize || self.is_training;
        let is_wide = channels.is_multiple_of(4) && operands.iter().all(|of| of.is_multiple_of(16));
        let images = self.groups.map_or(1, |groups| groups.images);
        let count = len.checked_div(channels * images).unwrap_or(0);
        let threads = channels.div_ceil(if is_wide { 4 } else { 1 });
        let across = threads.next_power_of_two().min(if is_wide { 8 } else { 32 });
        let tiles = threads.div_ceil(across);
        let busy = if has_sums { BUSY } else { 8 * BUSY };
        let down = backend::WORKGROUP as usize / across;
        let parts = busy.div_ceil((tiles * images).max(1)).min(count.div_ceil(down)).max(1);
        let part = count.div_ceil(parts).max(1);
        let parts = count.div_ceil(part).max(1);
        Ok(Stages {
            constants: [number as u32, self.is_training.into(), element_type(dtype)?],
            has: [self.has_scale, self.has_averages],
            numbers: [count as u32, channels as u32, self.epsilon.to_bits(), self.factor.to_bits()],
            is_wide,
            has_sums,
            across,
            part,
            groups: [tiles.min(MOST_GROUPS) as u32, parts as u32, images.min(MOST_GROUPS) as u32],
            images,
            width: self.groups.map_or(1, |groups| groups.width),
            is_of_images: self.groups.is_some(),
        })
    }
}

/// What has a mean and a variance each in group normalization.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) images: usize,
    /// The channels of a group.
    pub(super) width: usize,
}

/// Workgroups that keep a GPU busy. More of them would read the sums of more parts.
const BUSY: usize = 256;

/// The elements in a turn of a loop of `shaders/normalize.comp`.
const EACH: usize = 4;

/// What `shaders/normalize.comp` computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Normalize,
    Gradient,
    /// Mean and variance alone.
    Moments,
    /// The gradients of scale and offset where mean and variance are those of rows.
    RowGradient,
    /// The sums of the gradients of group normalization.
    GroupGradient,
}

/// How the elements are divided among workgroups, and what all launches are told.
pub(super) struct Stages {
    constants: [u32; 3],
    /// A scale, and averages, or what else they stand for.
    has: [bool; 2],
    numbers: [u32; 4],
    is_wide: bool,
    has_sums: bool,
    /// The threads along the channels.
    across: usize,
    /// The elements of a channel in a part.
    part: usize,
    groups: [u32; 3],
    images: usize,
    width: usize,
    /// Whether the first stage is all there is.
    is_of_images: bool,
}

impl Stages {
    /// Returns the number of sums between the stages.
    pub(super) fn sums(&self) -> usize {
        let [_, parts, _] = self.groups;
        let of_images = 2 * self.images * parts as usize * self.numbers[1] as usize;
        if self.has_sums { of_images } else { 0 }
    }

    /// Returns the turns of the loops of a thread.
    fn turns(&self) -> usize {
        let ([_, parts, _], down) = (self.groups, backend::WORKGROUP as usize / self.across);
        let sums = if self.has_sums { (parts as usize).div_ceil(down) } else { 0 };
        (self.part.div_ceil(down * EACH) + sums + 24) * self.images.div_ceil(MOST_GROUPS)
    }

    /// Passes each launch to `then`: of the sums, if there are any, and of the elements.
    pub(super) fn each(
        &self,
        op: &'static str,
        operands: &[Operand<'_>],
        mut then: impl FnMut(&Launch<'_>) -> Result<()>,
    ) -> Result<()> {
        let sums = if self.has_sums { self.groups[1] } else { 0 };
        let (across, part) = (self.across as u32, self.part as u32);
        let rest = [across, part, sums, self.images as u32, self.width as u32];
        let numbers = [&self.numbers[..], &rest].concat();
        let stages: &[bool] = match (self.has_sums, self.is_of_images) {
            (_, true) => &[false],
            (true, false) => &[false, true],
            (false, false) => &[true],
        };
        let [tiles, parts, images] = self.groups;
        stages.iter().try_for_each(|&is_last| {
            // Each workgroup adds the sums of all parts.
            let is_of_sums = is_last
                && [Op::Moments as u32, Op::RowGradient as u32].contains(&self.constants[0]);
            let flags = [is_last, self.is_wide, self.has[0], self.has[1]].map(u32::from);
            then(&Launch {
                op,
                shader: shader!("normalize"),
                constants: &[&self.constants[..], &flags].concat(),
                operands,
                numbers: &numbers,
                groups: [tiles, if is_of_sums { 1 } else { parts }, images],
            })
        })
    }
}

/// Returns the number of channels, and checks the shapes of the input and of `others`.
fn channels(shape: &[usize], others: &[&DeviceTensor]) -> Result<usize> {
    let (4 | 5, Some(&channels)) = (shape.len(), shape.last()) else {
        return Err(wrong(format!("input must be 4 or 5-dimensional, and not {shape:?}")));
    };
    for other in others {
        let other = from_host(other.shape())?;
        if other != [channels] {
            return Err(wrong(format!("{other:?} is not the shape of {channels} channels")));
        }
    }
    Ok(channels)
}

/// Normalizes. `FusedBatchNormV3` has a sixth output, which only other devices use.
fn normalize(context: &Run<'_>, op: &'static str, norm: &BatchNorm, outputs: usize) -> Result<()> {
    let layout = norm.layout;
    let x = layout.input(context, op, 0)?;
    let [scale, offset, mean, variance] = [1, 2, 3, 4].map(|at| context.input(at));
    let (scale, offset, mean, variance) = (scale?, offset?, mean?, variance?);
    let shape = shape(&x)?;
    // Training from the first step needs no mean and variance, which are then empty.
    let has_old = !norm.is_training || norm.factor != 1.0;
    let channels = match has_old {
        true => channels(&shape, &[&scale, &offset, &mean, &variance])?,
        false => channels(&shape, &[&scale, &offset])?,
    };
    let y = layout.output(context, 0, &shape)?;
    let rows = [1, 2, 3, 4].map(|at| output(context, at, &[channels]));
    let [new_mean, new_variance, saved_mean, saved_variance] = rows;
    let rows = [new_mean?, new_variance?, saved_mean?, saved_variance?];
    for unused in 5..outputs {
        output(context, unused, &[0])?;
    }
    let all = [&x, &scale, &offset, &mean, &variance, &y.tensor];
    let operands: Vec<_> = all.into_iter().chain(&rows).map(Operand::from).collect();
    norm.enqueue(context, op, Op::Normalize, &x, channels, &operands)?;
    y.finish(context, op)
}

fn gradient(context: &Run<'_>, op: &'static str, norm: &BatchNorm) -> Result<()> {
    let layout = norm.layout;
    let (dy, x) = (layout.input(context, op, 0)?, layout.input(context, op, 1)?);
    let [scale, mean, variance] = [2, 3, 4].map(|at| context.input(at));
    let (scale, mean, variance) = (scale?, mean?, variance?);
    let shape = shape(&x)?;
    let channels = channels(&shape, &[&scale, &mean, &variance])?;
    if dy.shape() != x.shape() {
        let actual = dy.shape();
        return Err(wrong(format!("y_backprop has the shape {actual:?} and not {shape:?}")));
    }
    let dx = layout.output(context, 0, &shape)?;
    let (dscale, doffset) = (output(context, 1, &[channels])?, output(context, 2, &[channels])?);
    for unused in [3, 4] {
        output(context, unused, &[0])?;
    }
    let (rows, outputs) = ([&scale, &mean, &variance], [&dx.tensor, &dscale, &doffset, &dx.tensor]);
    norm.slopes(context, op, [&x, &dy], rows, outputs)?;
    dx.finish(context, op)
}

kernels! {
    types (T = [f32])
    "FusedBatchNorm" FusedBatchNormV1 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| normalize(context, op, norm, 5);
    "FusedBatchNormGrad" FusedBatchNormGradV1 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| gradient(context, op, norm);
    types (T = [f32, f16, bf16], U = [f32])
    "FusedBatchNormV2" FusedBatchNormV2 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| normalize(context, op, norm, 5);
    "FusedBatchNormGradV2" FusedBatchNormGradV2 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| gradient(context, op, norm);
    "FusedBatchNormV3" FusedBatchNormV3 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| normalize(context, op, norm, 6);
    "FusedBatchNormGradV3" FusedBatchNormGradV3 [BatchNorm = BatchNorm::new] () =
        |context, op, norm| gradient(context, op, norm);
}
