//! Products of matrices.

use super::{Real, View, ViewMut};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, Ix2};
use se_plugin::toolkit::Number as _;

/// Multiplies two matrices, each of which may be transposed first.
fn multiply<T: Real>(
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
