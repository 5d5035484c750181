//! Batch normalization.

use super::data_format::Layout;
use super::*;

/// The attributes of both operations.
pub(super) struct BatchNorm {
    pub(super) layout: Layout,
    pub(super) epsilon: f32,
    pub(super) is_training: bool,
    /// The weight of the new values in the running mean and variance.
    pub(super) factor: f32,
}

impl BatchNorm {
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
        })
    }

    /// Enqueues the shader with its operands, in their order.
    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        is_gradient: bool,
        x: &DeviceTensor,
        channels: usize,
        operands: &[Operand<'_>],
    ) -> Result<()> {
        let sizes = [x.len(), channels];
        ensure_turns(context, op, 3 * x.len().div_ceil(256 * channels.max(1)) + 24)?;
        self.with(op, is_gradient, x.dtype(), sizes, operands, |launch| launch.enqueue(context))
    }

    /// Passes the launch for `len` elements and `channels` to `then`, and returns what that returns.
    pub(super) fn with<R>(
        &self,
        op: &'static str,
        is_gradient: bool,
        dtype: DType,
        [len, channels]: [usize; 2],
        operands: &[Operand<'_>],
        then: impl FnOnce(&Launch<'_>) -> Result<R>,
    ) -> Result<R> {
        word(len)?;
        let count = len.checked_div(channels).unwrap_or(0);
        then(&Launch {
            op,
            shader: shader!("normalize"),
            constants: &[is_gradient.into(), self.is_training.into(), element_type(dtype)?],
            operands,
            numbers: &[
                count as u32,
                channels as u32,
                self.epsilon.to_bits(),
                self.factor.to_bits(),
            ],
            groups: groups(channels.saturating_mul(256)),
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

kernels! {
    types (T = [f32, f16, bf16], U = [f32])
    "FusedBatchNormV3" FusedBatchNorm [BatchNorm = BatchNorm::new] () = |context, op, norm| {
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
        output(context, 5, &[0])?;
        let all = [&x, &scale, &offset, &mean, &variance, &y.tensor];
        let operands: Vec<_> = all.into_iter().chain(&rows).map(Operand::from).collect();
        norm.enqueue(context, op, false, &x, channels, &operands)?;
        y.finish(context, op)
    };
    "FusedBatchNormGradV3" FusedBatchNormGrad [BatchNorm = BatchNorm::new] () = |context, op, norm| {
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
        let (dscale, doffset) =
            (output(context, 1, &[channels])?, output(context, 2, &[channels])?);
        for unused in [3, 4] {
            output(context, unused, &[0])?;
        }
        let out = &dx.tensor;
        let all = [&x, &scale, &dy, &mean, &variance, out, &dscale, &doffset, out, out];
        let operands = all.map(Operand::from);
        norm.enqueue(context, op, true, &x, channels, &operands)?;
        dx.finish(context, op)
    };
}
