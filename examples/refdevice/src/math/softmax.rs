//! Softmax and its losses. Tensors are `[row, class]`.

use super::{Real, View, ViewMut};
use ndarray::{ArrayView1, ArrayViewMut1, Axis, Zip};
use num_traits::Float as _;
use se_plugin::toolkit::Number as _;

/// Returns the greatest number of a row, and the logarithm of the sum of `exp(x - greatest)`.
fn scale<T: Real>(row: &ArrayView1<'_, T>) -> (T::Wide, T::Wide) {
    let greatest = row.fold(T::Wide::LOWEST, |greatest, x| greatest.max_or_nan(x.widen()));
    let sum = row.fold(T::Wide::ZERO, |sum, x| sum + (x.widen() - greatest).exp());
    (greatest, sum.ln())
}

fn rows<'a, T>(all: &'a View<'_, T>) -> impl Iterator<Item = ArrayView1<'a, T>> {
    all.axis_iter(Axis(0)).map(|row| row.into_dimensionality().expect("rows have rank 1"))
}

fn rows_mut<'a, T>(all: &'a mut ViewMut<'_, T>) -> impl Iterator<Item = ArrayViewMut1<'a, T>> {
    all.axis_iter_mut(Axis(0)).map(|row| row.into_dimensionality().expect("rows have rank 1"))
}

/// Computes the probabilities of each row, or their logarithms.
pub fn softmax<T: Real>(logits: View<'_, T>, mut out: ViewMut<'_, T>, logarithm: bool) {
    for (row, mut out) in rows(&logits).zip(rows_mut(&mut out)) {
        let (greatest, log_sum) = scale(&row);
        let sum = log_sum.exp();
        Zip::from(&mut out).and(row).for_each(|out, x| {
            let x = x.widen() - greatest;
            *out = T::narrow(if logarithm { x - log_sum } else { x.exp() / sum });
        });
    }
}

/// Computes the cross-entropy of each row with its label, and its gradient. A label out of range gives NaN.
pub fn sparse_cross_entropy<T: Real>(
    logits: View<'_, T>,
    labels: View<'_, i64>,
    mut loss: ViewMut<'_, T>,
    mut gradient: ViewMut<'_, T>,
) {
    let outs = loss.iter_mut().zip(rows_mut(&mut gradient));
    for ((row, &label), (loss, mut gradient)) in rows(&logits).zip(&labels).zip(outs) {
        let Some(label) = usize::try_from(label).ok().filter(|&label| label < row.len()) else {
            *loss = T::from_f64(f64::NAN);
            gradient.fill(T::from_f64(f64::NAN));
            continue;
        };
        let (greatest, log_sum) = scale(&row);
        *loss = T::narrow(log_sum - (row[label].widen() - greatest));
        for (at, (out, x)) in gradient.iter_mut().zip(row).enumerate() {
            let probability = (x.widen() - greatest - log_sum).exp();
            let is = if at == label { T::Wide::ONE } else { T::Wide::ZERO };
            *out = T::narrow(probability - is);
        }
    }
}

/// Computes the cross-entropy of each row with its probabilities, and its gradient. Both inputs are broadcast to
/// the shape of the gradient.
pub fn cross_entropy<T: Real>(
    logits: View<'_, T>,
    labels: View<'_, T>,
    mut loss: ViewMut<'_, T>,
    mut gradient: ViewMut<'_, T>,
) {
    let shape = gradient.raw_dim();
    let logits = logits.broadcast(shape.clone()).expect("the shapes were checked");
    let labels = labels.broadcast(shape).expect("the shapes were checked");
    let outs = loss.iter_mut().zip(rows_mut(&mut gradient));
    for ((row, labels), (loss, mut gradient)) in rows(&logits).zip(rows(&labels)).zip(outs) {
        let (greatest, log_sum) = scale(&row);
        let mut sum = T::Wide::ZERO;
        Zip::from(&mut gradient).and(row).and(labels).for_each(|out, x, label| {
            let (x, label) = (x.widen() - greatest, label.widen());
            if label != T::Wide::ZERO {
                sum = sum + label * (log_sum - x);
            }
            *out = T::narrow((x - log_sum).exp() - label);
        });
        *loss = T::narrow(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, noise, output};
    use super::*;
    use ndarray::{ArrayD, IxDyn, arr1, arr2};

    fn probabilities(logits: &ArrayD<f32>) -> ArrayD<f32> {
        let exp = logits.mapv(f32::exp);
        let sums = exp.sum_axis(Axis(1)).insert_axis(Axis(1));
        exp / sums
    }

    #[test]
    fn probabilities_are_right() {
        let logits = noise(&[4, 7]) * 5.0;
        let expected = probabilities(&logits);
        let found = output(&[4, 7], |out| softmax(logits.view(), out, false));
        assert_close(found.view(), expected.view());
        let found = output(&[4, 7], |out| softmax(logits.view(), out, true));
        assert_close(found.view(), expected.mapv(f32::ln).view());
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let logits = arr2(&[[1000.0_f32, 1000.0, -1000.0]]).into_dyn();
        let found = output(&[1, 3], |out| softmax(logits.view(), out, false));
        assert_eq!(found, arr2(&[[0.5, 0.5, 0.0]]).into_dyn());
    }

    #[test]
    fn losses_and_gradients_are_right() {
        let logits = noise(&[3, 5]) * 3.0;
        let labels = arr1(&[4_i64, 0, 9]).into_dyn();
        let mut gradient = ArrayD::zeros(IxDyn(&[3, 5]));
        let loss = output(&[3], |loss| {
            sparse_cross_entropy(logits.view(), labels.view(), loss, gradient.view_mut());
        });
        let expected = probabilities(&logits);
        for (at, label) in [(0, 4), (1, 0)] {
            assert!((loss[[at]] + expected[[at, label]].ln()).abs() < 1e-5);
            for class in 0..5 {
                let one = if class == label { 1.0 } else { 0.0 };
                assert!((gradient[[at, class]] - expected[[at, class]] + one).abs() < 1e-6);
            }
        }
        assert!(loss[[2]].is_nan() && gradient[[2, 3]].is_nan(), "a label that is not there");

        let dense = arr2(&[[0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.0, 0.0, 0.0]]).into_dyn();
        let two = logits.slice_axis(Axis(0), (0..2).into());
        let mut other = ArrayD::zeros(IxDyn(&[2, 5]));
        let dense_loss = output(&[2], |loss| {
            cross_entropy(two.view(), dense.view(), loss, other.view_mut());
        });
        assert!((dense_loss[[0]] - loss[[0]]).abs() < 1e-5);
        let half = -(expected[[1, 0]].ln() + expected[[1, 1]].ln()) / 2.0;
        assert!((dense_loss[[1]] - half).abs() < 1e-5);
        assert!((other[[1, 0]] - expected[[1, 0]] + 0.5).abs() < 1e-6);
    }
}
