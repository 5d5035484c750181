//! Einsum: sums of products by an equation.

use super::{Real, product};
use ndarray::{Array3, Axis};
use se_plugin::toolkit::einsum::Einsum;
use se_plugin::toolkit::{Number as _, Strides};

/// Returns the positions of the elements along some labels in one of the three tensors.
fn places(labels: &[Strides<3>], tensor: usize) -> Vec<usize> {
    labels.iter().fold(vec![0], |places, label| {
        let along = |&place: &usize| {
            (0..label.len).map(move |at| place + at * label.strides[tensor]).collect::<Vec<_>>()
        };
        places.iter().flat_map(along).collect()
    })
}

/// Computes the equation: a product of matrices for each batch. `b` is a single 1 if there is only one input.
pub fn einsum<T: Real>(einsum: &Einsum, a: &[T], b: &[T], out: &mut [T]) {
    out.fill(T::ZERO);
    if einsum.is_empty() {
        return;
    }
    let [batch, rows, columns, inner] =
        [[true, true, true], [true, false, true], [false, true, true], [true, true, false]]
            .map(|steps| einsum.labels(steps));
    // Labels that only one input has are summed first.
    let pack = |elements: &[T], tensor: usize, sides: [&[Strides<3>]; 2], alone: [bool; 3]| {
        let [batches, first, second] =
            [&batch[..], sides[0], sides[1]].map(|labels| places(labels, tensor));
        let sums = places(&einsum.labels(alone), tensor);
        Array3::from_shape_fn((batches.len(), first.len(), second.len()), |(i, j, k)| {
            let start = batches[i] + first[j] + second[k];
            sums.iter().fold(T::Wide::ZERO, |sum, place| sum.plus(elements[start + place].widen()))
        })
    };
    let a = pack(a, 0, [&rows, &inner], [true, false, false]);
    let b = pack(b, 1, [&inner, &columns], [false, true, false]);
    let [batches, rows, columns] = [&batch, &rows, &columns].map(|labels| places(labels, 2));
    for ((a, b), batch) in a.axis_iter(Axis(0)).zip(b.axis_iter(Axis(0))).zip(batches) {
        let products = product::wide::<T>(a, b);
        for (products, row) in products.rows().into_iter().zip(&rows) {
            for (&product, column) in products.iter().zip(&columns) {
                out[batch + row + column] = T::narrow(product);
            }
        }
    }
}
