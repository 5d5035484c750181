//! Pooling and its gradients. Images are `[image, row, column, channel]`.

use super::convolve::{Grid, Windows};
use super::{Real, View, ViewMut};
use ndarray::ArrayD;
use se_plugin::toolkit::Number;

/// Computes the maximum of each window. NaN is skipped, as on the CPU.
pub fn greatest<T: Number>(input: View<'_, T>, mut out: ViewMut<'_, T>, grid: Grid) {
    for (at, out) in out.indexed_iter_mut() {
        let mut greatest = T::LOWEST;
        window(&grid, at[1], at[2], |row, column| {
            let element = input[[at[0], row, column, at[3]]];
            if element > greatest {
                greatest = element;
            }
        });
        *out = greatest;
    }
}

/// Computes the gradient of [`greatest`], which goes to the first maximum of each window.
pub fn greatest_gradient<T: Real>(
    input: View<'_, T>,
    gradient: View<'_, T>,
    mut out: ViewMut<'_, T>,
    grid: Grid,
) {
    let mut sums = ArrayD::from_elem(out.raw_dim(), 0.0);
    for (at, gradient) in gradient.indexed_iter() {
        let mut best: Option<(T, [usize; 4])> = None;
        window(&grid, at[1], at[2], |row, column| {
            let place = [at[0], row, column, at[3]];
            if best.is_none_or(|(greatest, _)| input[&place[..]] > greatest) {
                best = Some((input[&place[..]], place));
            }
        });
        if let Some((_, place)) = best {
            sums[&place[..]] += gradient.to_f64();
        }
    }
    out.zip_mut_with(&sums, |out, &sum| *out = T::from_f64(sum));
}

/// Calls `body` for each place of a window that is within the input.
fn window(grid: &Grid, down: usize, right: usize, mut body: impl FnMut(usize, usize)) {
    let [rows, columns]: &[Windows; 2] = grid;
    for row in (0..rows.size).filter_map(|element| rows.place(down, element)) {
        for column in (0..columns.size).filter_map(|element| columns.place(right, element)) {
            body(row, column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::convolve::Padding;
    use super::*;
    use ndarray::{IxDyn, arr1};

    /// Runs a function on an output of this shape, which is filled with NaN first.
    fn output(shape: &[usize], body: impl FnOnce(ViewMut<'_, f32>)) -> ArrayD<f32> {
        let mut out = ArrayD::from_elem(IxDyn(shape), f32::NAN);
        body(out.view_mut());
        out
    }

    #[test]
    fn nan_is_skipped() {
        let grid = [(1, 1), (3, 2)]
            .map(|(input, size)| Windows::new(input, size, 1, 1, Padding::Valid).unwrap());
        for (x, expected) in
            [([1.0, f32::NAN, 0.0], [1.0, 0.0]), ([f32::NAN, 1.0, 2.0], [1.0, 2.0])]
        {
            let x = arr1(&x).into_shape_with_order(IxDyn(&[1, 1, 3, 1])).unwrap();
            let out = output(&[1, 1, 2, 1], |out| greatest(x.view(), out, grid));
            assert_eq!(out.iter().copied().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_first_of_equal_elements_gets_the_gradient() {
        let x = ArrayD::from_elem(IxDyn(&[1, 1, 2, 1]), 3.0_f32);
        let dy = arr1(&[7.0_f32]).into_shape_with_order(IxDyn(&[1, 1, 1, 1])).unwrap();
        let grid = [(1, 1), (2, 2)]
            .map(|(input, size)| Windows::new(input, size, 1, 1, Padding::Valid).unwrap());
        let out = output(&[1, 1, 2, 1], |out| greatest_gradient(x.view(), dy.view(), out, grid));
        assert_eq!((out[[0, 0, 0, 0]], out[[0, 0, 1, 0]]), (7.0, 0.0));
    }
}
