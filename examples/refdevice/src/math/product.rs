//! Products of matrices.

use super::{Real, View, ViewMut};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, Ix2};
use se_plugin::toolkit::Number as _;

/// Multiplies two matrices, each of which may be transposed first.
pub fn multiply<T: Real>(
    a: View<'_, T>,
    b: View<'_, T>,
    out: ViewMut<'_, T>,
    transpose_a: bool,
    transpose_b: bool,
) {
    let [a, b] = [(a, transpose_a), (b, transpose_b)].map(|(matrix, transpose)| {
        let matrix = matrix.into_dimensionality::<Ix2>().expect("matrices have rank 2");
        if transpose { matrix.reversed_axes() } else { matrix }
    });
    let mut out = out.into_dimensionality::<Ix2>().expect("matrices have rank 2");
    into(a, b, &mut out, false);
}

/// Writes a product to `out`, or adds it to `out` if `add` is set.
pub(super) fn into<T: Real>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    out: &mut ArrayViewMut2<'_, T>,
    add: bool,
) {
    let [a, b] = [a, b].map(|matrix| matrix.mapv(T::widen));
    out.zip_mut_with(&wide::<T>(a.view(), b.view()), |out, &wide| {
        *out = T::narrow(if add { out.widen().plus(wide) } else { wide });
    });
}

/// Returns the product in the wide type that it is computed in.
pub(super) fn wide<T: Real>(
    a: ArrayView2<'_, T::Wide>,
    b: ArrayView2<'_, T::Wide>,
) -> Array2<T::Wide> {
    let mut out = Array2::from_elem((a.nrows(), b.ncols()), T::Wide::ZERO);
    general_mat_mul(T::Wide::ONE, &a, &b, T::Wide::ZERO, &mut out);
    out
}

/// Multiplies many pairs of matrices, which are in the last two axes. The other axes are broadcast.
pub fn multiply_batches<T: Real>(
    a: View<'_, T>,
    b: View<'_, T>,
    out: ViewMut<'_, T>,
    transpose_a: bool,
    transpose_b: bool,
) {
    if out.ndim() == 2 {
        return multiply(a, b, out, transpose_a, transpose_b);
    }
    let mut out = out;
    for (index, out) in out.axis_iter_mut(Axis(0)).enumerate() {
        let rank = out.ndim() + 1;
        let part = |whole: &View<'_, T>| -> ndarray::ArrayD<T> {
            // A tensor without this axis is used as a whole.
            match whole.ndim() < rank {
                true => whole.to_owned(),
                false => whole.index_axis(Axis(0), index.min(whole.shape()[0] - 1)).to_owned(),
            }
        };
        let (a, b) = (part(&a), part(&b));
        multiply_batches(a.view(), b.view(), out, transpose_a, transpose_b);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, noise, output};
    use super::*;
    use ndarray::{ArrayD, IxDyn};

    fn naive(a: View<'_, f32>, b: View<'_, f32>, ta: bool, tb: bool) -> ArrayD<f32> {
        let at = |matrix: &View<'_, f32>, transpose, row, column| match transpose {
            true => matrix[[column, row]],
            false => matrix[[row, column]],
        };
        let size = |matrix: &View<'_, f32>, transpose: bool, axis: usize| {
            matrix.shape()[if transpose { 1 - axis } else { axis }]
        };
        let shape = [size(&a, ta, 0), size(&b, tb, 1)];
        ArrayD::from_shape_fn(IxDyn(&shape), |out| {
            (0..size(&a, ta, 1)).map(|k| at(&a, ta, out[0], k) * at(&b, tb, k, out[1])).sum()
        })
    }

    #[test]
    fn matrices_are_multiplied() {
        for (m, k, n) in [(1, 1, 1), (3, 5, 7), (17, 33, 9), (0, 3, 2), (2, 0, 3)] {
            for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
                let a = noise(&if ta { [k, m] } else { [m, k] });
                let b = noise(&if tb { [n, k] } else { [k, n] });
                let found = output(&[m, n], |out| multiply(a.view(), b.view(), out, ta, tb));
                assert_close(found.view(), naive(a.view(), b.view(), ta, tb).view());
            }
        }
    }

    #[test]
    fn batches_are_broadcast() {
        let (a, b) = (noise(&[2, 1, 3, 4]), noise(&[5, 4, 2]));
        let found = output(&[2, 5, 3, 2], |out| {
            multiply_batches(a.view(), b.view(), out, false, false);
        });
        for (i, j) in [(0, 0), (1, 4), (0, 3)] {
            let part = |whole: View<'_, f32>, indices: &[usize]| {
                indices.iter().fold(whole.to_owned(), |part, &index| {
                    part.index_axis(Axis(0), index).to_owned()
                })
            };
            let expected =
                naive(part(a.view(), &[i, 0]).view(), part(b.view(), &[j]).view(), false, false);
            assert_close(part(found.view(), &[i, j]).view(), expected.view());
        }
    }
}
