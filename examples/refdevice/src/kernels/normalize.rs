//! Batch normalization.

use super::matrix::check_format;
use super::*;
use crate::math::normalize::{self, Channels};
use ndarray::ArrayView1;

/// The attributes of the operation and of its gradient.
struct BatchNorm {
    epsilon: f64,
    is_training: bool,
    /// The weight of the new mean and variance in the running ones.
    factor: f64,
}

impl BatchNorm {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        let factor = match construction.has_attr("exponential_avg_factor")? {
            true => construction.attr::<f32>("exponential_avg_factor")?,
            false => 1.0,
        };
        Ok(Self {
            epsilon: construction.attr::<f32>("epsilon")?.into(),
            is_training: construction.attr("is_training")?,
            factor: factor.into(),
        })
    }
}

/// Returns the number of channels, after a check of the input's shape and those of `others`.
fn channels(shape: &[usize], others: &[&DeviceTensor]) -> Result<usize> {
    let (4, Some(&channels)) = (shape.len(), shape.last()) else {
        return Err(wrong(format!("input must be 4-dimensional, and not {shape:?}")));
    };
    for other in others {
        let other = from_host(other.shape())?;
        if other != [channels] {
            return Err(wrong(format!("{other:?} is not the shape of {channels} channels")));
        }
    }
    Ok(channels)
}

fn row(bytes: &[u8]) -> Result<&[f32]> {
    bytemuck::try_cast_slice(bytes).map_err(Error::internal)
}

fn row_mut(bytes: &mut [u8]) -> Result<&mut [f32]> {
    bytemuck::try_cast_slice_mut(bytes).map_err(Error::internal)
}

struct FusedBatchNorm(BatchNorm);

#[kernel(op = "FusedBatchNormV3", types(T = [f32], U = [f32]))]
impl Kernel for FusedBatchNorm {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        BatchNorm::new(construction).map(Self)
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let BatchNorm { epsilon, is_training, factor } = self.0;
        let [x, scale, offset, mean, variance] = [0, 1, 2, 3, 4].map(|at| context.input(at));
        let (x, scale, offset, mean, variance) = (x?, scale?, offset?, mean?, variance?);
        let shape = shape(&x)?;
        // Training with a factor of 1 does not read the old mean and variance, which are then empty.
        let has_old = !is_training || factor != 1.0;
        let channels = match has_old {
            true => channels(&shape, &[&scale, &offset, &mean, &variance])?,
            false => channels(&shape, &[&scale, &offset])?,
        };
        let y = output(context, 0, &shape)?;
        let rows = [1, 2, 3, 4].map(|at| output(context, at, &[channels]));
        let [new_mean, new_variance, saved_mean, saved_variance] = rows;
        let (new_mean, new_variance) = (new_mean?, new_variance?);
        let (saved_mean, saved_variance) = (saved_mean?, saved_variance?);
        output(context, 5, &[0])?;
        let ins = [&x, &scale, &offset, &mean, &variance];
        let outs = [&y, &new_mean, &new_variance, &saved_mean, &saved_variance];
        launch(context, "FusedBatchNormV3", ins, outs, move |ins, outs| {
            let [x, scale, offset, mean, variance] = ins;
            let [y, new_mean, new_variance, saved_mean, saved_variance] = outs;
            let (x, scale, offset) = (view::<f32>(x, &shape)?, row(scale)?, row(offset)?);
            let (mean, variance) = (row(mean)?, row(variance)?);
            let old = |at: usize| (f64::from(mean[at]), f64::from(variance[at]));
            let moments: Vec<_> = match is_training {
                true => normalize::moments(&x),
                false => (0..channels).map(old).collect(),
            };
            let count = shape[..3].iter().product::<usize>() as f64;
            let (new_mean, new_variance) = (row_mut(new_mean)?, row_mut(new_variance)?);
            let (saved_mean, saved_variance) = (row_mut(saved_mean)?, row_mut(saved_variance)?);
            for (at, &(mean, variance)) in moments.iter().enumerate() {
                (saved_mean[at], saved_variance[at]) = (mean as f32, variance as f32);
                let mut new = (mean, variance);
                if is_training {
                    // Bessel's correction: the inputs are a sample.
                    new.1 *= count / (count - 1.0).max(1.0);
                    if factor != 1.0 {
                        let (old_mean, old_variance) = old(at);
                        new.0 = old_mean * (1.0 - factor) + new.0 * factor;
                        new.1 = old_variance * (1.0 - factor) + new.1 * factor;
                    }
                }
                (new_mean[at], new_variance[at]) = (new.0 as f32, new.1 as f32);
            }
            let scale = ArrayView1::from(scale);
            let channels = Channels { moments: &moments, scale, epsilon };
            normalize::normalize(x, view_mut(y, &shape)?, channels, ArrayView1::from(offset));
            Ok(())
        })
    }
}

struct FusedBatchNormGrad(BatchNorm);

#[kernel(op = "FusedBatchNormGradV3", types(T = [f32], U = [f32]))]
impl Kernel for FusedBatchNormGrad {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        BatchNorm::new(construction).map(Self)
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let BatchNorm { epsilon, is_training, .. } = self.0;
        let [dy, x, scale, mean, variance] = [0, 1, 2, 3, 4].map(|at| context.input(at));
        let (dy, x, scale, mean, variance) = (dy?, x?, scale?, mean?, variance?);
        let shape = shape(&x)?;
        let channels = channels(&shape, &[&scale, &mean, &variance])?;
        if dy.shape() != x.shape() {
            return Err(wrong(format!(
                "y_backprop has the shape {:?} and not {shape:?}",
                dy.shape()
            )));
        }
        let dx = output(context, 0, &shape)?;
        let (dscale, doffset) =
            (output(context, 1, &[channels])?, output(context, 2, &[channels])?);
        for unused in [3, 4] {
            output(context, unused, &[0])?;
        }
        let ins = [&dy, &x, &scale, &mean, &variance];
        let outs = [&dx, &dscale, &doffset];
        launch(context, "FusedBatchNormGradV3", ins, outs, move |ins, outs| {
            let ([dy, x, scale, mean, variance], [dx, dscale, doffset]) = (ins, outs);
            let moments: Vec<_> = row(mean)?
                .iter()
                .zip(row(variance)?)
                .map(|(&mean, &variance)| (f64::from(mean), f64::from(variance)))
                .collect();
            let scale = ArrayView1::from(row(scale)?);
            let channels = Channels { moments: &moments, scale, epsilon };
            let outs = (view_mut(dx, &shape)?, row_mut(dscale)?, row_mut(doffset)?);
            let (x, dy) = (view(x, &shape)?, view(dy, &shape)?);
            normalize::gradients(x, dy, channels, is_training, outs);
            Ok(())
        })
    }
}
