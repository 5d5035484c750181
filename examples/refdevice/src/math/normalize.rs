//! Batch normalization. Tensors have their channels last; a row has one value for each channel.

use super::{Real, View, ViewMut};
use ndarray::{ArrayView1, Axis};

/// Computes the mean and variance of each channel, over all other axes.
#[must_use]
pub fn moments<T: Real>(input: &View<'_, T>) -> Vec<(f64, f64)> {
    let axis = Axis(input.ndim() - 1);
    let channels = input.axis_iter(axis).map(|channel| {
        let count = channel.len() as f64;
        let mean = channel.fold(0.0, |sum, x| sum + x.to_f64()) / count;
        let squares = channel.fold(0.0, |sum, x| sum + (x.to_f64() - mean).powi(2));
        (mean, squares / count)
    });
    channels.collect()
}

/// The mean, variance and scale of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a, T> {
    /// Mean and variance.
    pub moments: &'a [(f64, f64)],
    /// The factors of the normalized input.
    pub scale: ArrayView1<'a, T>,
    /// A small number that is added to the variance.
    pub epsilon: f64,
}

impl<T: Real> Channels<'_, T> {
    /// Returns the mean, the reciprocal of the standard deviation, and the scale.
    fn at(&self, channel: usize) -> (f64, f64, f64) {
        let (mean, variance) = self.moments[channel];
        (mean, (variance + self.epsilon).sqrt().recip(), self.scale[channel].to_f64())
    }
}

/// Normalizes each channel by its mean and variance, scales it and adds an offset.
pub fn normalize<T: Real>(
    input: View<'_, T>,
    mut out: ViewMut<'_, T>,
    channels: Channels<'_, T>,
    offset: ArrayView1<'_, T>,
) {
    let axis = Axis(input.ndim() - 1);
    let pairs = input.axis_iter(axis).zip(out.axis_iter_mut(axis));
    for (channel, (input, mut out)) in pairs.enumerate() {
        let (mean, reciprocal, scale) = channels.at(channel);
        let offset = offset[channel].to_f64();
        out.zip_mut_with(&input, |out, x| {
            *out = T::from_f64((x.to_f64() - mean) * reciprocal * scale + offset);
        });
    }
}

/// Computes the gradients of [`normalize`]: of the input, of the scale and of the offset. With `is_training` mean
/// and variance are those of the input, and depend on it.
pub fn gradients<T: Real>(
    input: View<'_, T>,
    gradient: View<'_, T>,
    channels: Channels<'_, T>,
    is_training: bool,
    (mut out, scale_out, offset_out): (ViewMut<'_, T>, &mut [T], &mut [T]),
) {
    let axis = Axis(input.ndim() - 1);
    let inputs = input.axis_iter(axis).zip(gradient.axis_iter(axis));
    for (channel, ((x, dy), mut out)) in inputs.zip(out.axis_iter_mut(axis)).enumerate() {
        let (mean, reciprocal, scale) = channels.at(channel);
        let count = x.len() as f64;
        let pairs =
            || x.iter().zip(&dy).map(|(x, dy)| ((x.to_f64() - mean) * reciprocal, dy.to_f64()));
        let (mut sum, mut dot) = (0.0, 0.0);
        for (normal, dy) in pairs() {
            sum += dy;
            dot += dy * normal;
        }
        for (out, (normal, dy)) in out.iter_mut().zip(pairs()) {
            let own = if is_training { (sum + normal * dot) / count } else { 0.0 };
            *out = T::from_f64(scale * reciprocal * (dy - own));
        }
        (scale_out[channel], offset_out[channel]) = (T::from_f64(dot), T::from_f64(sum));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::noise;
    use super::*;
    use ndarray::{ArrayD, IxDyn, arr1};

    const EPSILON: f64 = 1e-3;

    fn forward(x: &ArrayD<f64>, scale: &[f64], moments: Option<&[(f64, f64)]>) -> ArrayD<f64> {
        let own = super::moments(&x.view());
        let (scale, offset) = (arr1(scale), arr1(&[0.5, -1.0]));
        let mut out = ArrayD::zeros(x.raw_dim());
        let channels =
            Channels { moments: moments.unwrap_or(&own), scale: scale.view(), epsilon: EPSILON };
        normalize(x.view(), out.view_mut(), channels, offset.view());
        out
    }

    #[test]
    fn the_result_has_the_moments_asked_for() {
        let x = noise(&[3, 4, 5, 2]).mapv(f64::from) * 3.0 + 7.0;
        let y = forward(&x, &[2.0, 0.5], None);
        let moments = moments(&y.view());
        for ((mean, variance), (expected, scale)) in
            moments.into_iter().zip([(0.5, 2.0_f64), (-1.0, 0.5)])
        {
            assert!((mean - expected).abs() < 1e-9);
            assert!((variance.sqrt() - scale).abs() < 1e-3);
        }
    }

    /// Compares gradients with difference quotients of `sum(y * dy)`.
    #[test]
    fn gradients_are_slopes() {
        let x = noise(&[2, 3, 1, 2]).mapv(f64::from) * 2.0;
        let dy = noise(&[2, 3, 1, 2]).mapv(|x| f64::from(x) + 0.3);
        let scale = [1.5, -0.7];
        let fixed = [(0.1, 0.8), (-0.2, 1.2)];
        for is_training in [true, false] {
            let moments = (!is_training).then_some(&fixed[..]);
            let loss = |x: &ArrayD<f64>, scale: &[f64]| (forward(x, scale, moments) * &dy).sum();
            let own = super::moments(&x.view());
            let scales = arr1(&scale);
            let channels = Channels {
                moments: moments.unwrap_or(&own),
                scale: scales.view(),
                epsilon: EPSILON,
            };
            let mut dx = ArrayD::zeros(IxDyn(x.shape()));
            let (mut dscale, mut doffset) = ([0.0; 2], [0.0; 2]);
            let outs = (dx.view_mut(), &mut dscale[..], &mut doffset[..]);
            gradients(x.view(), dy.view(), channels, is_training, outs);
            let slope = |change: &dyn Fn(f64) -> f64| (change(1e-5) - change(-1e-5)) / 2e-5;
            for (at, &found) in dx.indexed_iter() {
                let expected = slope(&|step| {
                    let mut x = x.clone();
                    x[at.clone()] += step;
                    loss(&x, &scale)
                });
                assert!((found - expected).abs() < 1e-6, "{found} {expected} {is_training}");
            }
            for channel in 0..2 {
                let expected = slope(&|step| {
                    let mut scale = scale;
                    scale[channel] += step;
                    loss(&x, &scale)
                });
                assert!((dscale[channel] - expected).abs() < 1e-6);
            }
            let sums = dy.sum_axis(Axis(0)).sum_axis(Axis(0)).sum_axis(Axis(0));
            assert!(sums.iter().zip(doffset).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
}
