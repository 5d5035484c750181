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

#[cfg(test)]
mod tests {
    use super::super::testing::noise;
    use super::*;

    fn compute(equation: &str, inputs: &[(&[f32], &[usize])]) -> Vec<f32> {
        let shapes: Vec<_> = inputs.iter().map(|(_, shape)| *shape).collect();
        let plan = Einsum::new(equation, &shapes).unwrap();
        let mut out = vec![f32::NAN; plan.shape().iter().product()];
        einsum(&plan, inputs[0].0, inputs.get(1).map_or(&[1.0], |(b, _)| b), &mut out);
        out
    }

    #[test]
    fn diagonals_sums_and_transpositions_are_equations() {
        let matrix = (&[1.0, 2.0, 3.0, 4.0][..], &[2, 2][..]);
        assert_eq!(compute("ii->", &[matrix]), [5.0]);
        assert_eq!(compute("ii->i", &[matrix]), [1.0, 4.0]);
        assert_eq!(compute("ij->ji", &[matrix]), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(compute("ij->i", &[matrix]), [3.0, 7.0]);
        assert_eq!(compute("i->ii", &[(&[5.0, 6.0], &[2])]), [5.0, 0.0, 0.0, 6.0]);
        assert_eq!(compute("ij,ij->", &[matrix, matrix]), [30.0]);
        assert_eq!(compute("i,j->ij", &[(&[2.0], &[1]), (&[3.0, 4.0], &[2])]), [6.0, 8.0]);
        assert_eq!(compute("ij,k->i", &[matrix, (&[1.0, 1.0], &[2])]), [6.0, 14.0]);
        assert_eq!(compute("ij,jk->ik", &[(&[], &[2, 0]), (&[], &[0, 1])]), [0.0, 0.0]);
    }

    #[test]
    fn attention_is_a_sum_of_products() {
        // [batch, query, head, depth] and [batch, key, head, depth]
        let (q, k) = (noise(&[2, 3, 4, 5]), noise(&[2, 6, 4, 5]));
        let inputs = [(q.as_slice().unwrap(), q.shape()), (k.as_slice().unwrap(), k.shape())];
        let found = compute("bqhd,bkhd->bhqk", &inputs);
        let mut places = found.iter();
        for (b, h, i, j) in ndarray::indices((2, 4, 3, 6)) {
            let sum: f32 = (0..5).map(|d| q[[b, i, h, d]] * k[[b, j, h, d]]).sum();
            let found = places.next().unwrap();
            assert!((found - sum).abs() < 1e-5, "{found} and not {sum}");
        }
    }
}
