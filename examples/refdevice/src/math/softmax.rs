//! Softmax and its loss. Tensors are `[row, class]`.

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

/// Computes the probabilities of each row.
pub fn softmax<T: Real>(logits: View<'_, T>, mut out: ViewMut<'_, T>) {
    for (row, mut out) in rows(&logits).zip(rows_mut(&mut out)) {
        let (greatest, log_sum) = scale(&row);
        let sum = log_sum.exp();
        Zip::from(&mut out).and(row).for_each(|out, x| {
            *out = T::narrow((x.widen() - greatest).exp() / sum);
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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{ArrayD, IxDyn, arr1, arr2};

    #[test]
    fn large_logits_do_not_overflow() {
        let logits = arr2(&[[1000.0_f32, 1000.0, -1000.0]]).into_dyn();
        let mut out = ArrayD::zeros(IxDyn(&[1, 3]));
        softmax(logits.view(), out.view_mut());
        assert_eq!(out, arr2(&[[0.5, 0.5, 0.0]]).into_dyn());
    }

    #[test]
    fn a_label_that_is_out_of_range_gives_nan() {
        let logits = arr2(&[[0.0_f32, 0.0], [0.0, 0.0]]).into_dyn();
        let labels = arr1(&[1_i64, 2]).into_dyn();
        let (mut loss, mut gradient) = (ArrayD::zeros(IxDyn(&[2])), ArrayD::zeros(IxDyn(&[2, 2])));
        sparse_cross_entropy(logits.view(), labels.view(), loss.view_mut(), gradient.view_mut());
        assert!((loss[[0]] - 2.0_f32.ln()).abs() < 1e-6 && loss[[1]].is_nan());
        assert_eq!((gradient[[0, 0]], gradient[[0, 1]]), (0.5, -0.5));
        assert!(gradient[[1, 0]].is_nan() && gradient[[1, 1]].is_nan());
    }
}
