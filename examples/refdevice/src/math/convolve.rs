//! Convolutions and their gradients: images are `[image, row, column, channel]`, filters are
//! `[row, column, channel, result]`.

use super::{Real, View, ViewMut, product};
use ndarray::{Array2, ArrayView2, ArrayView3, ArrayViewMut3, Axis, Ix2, Ix3};
use se_plugin::toolkit::Number as _;
pub use se_plugin::toolkit::window::{Padding, Windows};

/// The windows along rows and along columns.
pub type Grid = [Windows; 2];

/// Returns whether each window is one element of the input.
fn is_trivial(grid: &Grid) -> bool {
    let is_input = |one: &Windows| one.count == one.input && one.before == 0;
    grid.iter().all(|one| one.size == 1 && one.stride == 1 && is_input(one))
}

/// Copies the windows of an image to the rows of a matrix (im2col).
fn unfold<T: Real>(image: ArrayView3<'_, T>, grid: &Grid, out: &mut Array2<T::Wide>) {
    let [rows, columns] = grid;
    let channels = image.len_of(Axis(2));
    for (window, mut out) in out.axis_iter_mut(Axis(0)).enumerate() {
        let (down, right) = (window / columns.count, window % columns.count);
        let mut out = out.iter_mut();
        for row in 0..rows.size {
            for column in 0..columns.size {
                let place = rows.place(down, row).zip(columns.place(right, column));
                for (channel, out) in out.by_ref().take(channels).enumerate() {
                    *out = match place {
                        Some((row, column)) => image[[row, column, channel]].widen(),
                        None => T::Wide::ZERO,
                    };
                }
            }
        }
    }
}

/// Adds the rows of a matrix to the windows of an image (col2im).
fn fold<T: Real>(windows: &Array2<T::Wide>, grid: &Grid, image: &mut ndarray::Array3<T::Wide>) {
    let [rows, columns] = grid;
    let channels = image.len_of(Axis(2));
    for (window, values) in windows.axis_iter(Axis(0)).enumerate() {
        let (down, right) = (window / columns.count, window % columns.count);
        let mut values = values.iter();
        for row in 0..rows.size {
            for column in 0..columns.size {
                let place = rows.place(down, row).zip(columns.place(right, column));
                for (channel, &value) in values.by_ref().take(channels).enumerate() {
                    if let Some((row, column)) = place {
                        let sum = &mut image[[row, column, channel]];
                        *sum = sum.plus(value);
                    }
                }
            }
        }
    }
}

fn image<'a, T>(all: &'a View<'_, T>, index: usize) -> ArrayView3<'a, T> {
    all.index_axis(Axis(0), index).into_dimensionality::<Ix3>().expect("images have rank 4")
}

fn image_mut<'a, T>(all: &'a mut ViewMut<'_, T>, index: usize) -> ArrayViewMut3<'a, T> {
    all.index_axis_mut(Axis(0), index).into_dimensionality::<Ix3>().expect("images have rank 4")
}

/// Views a filter as a matrix: elements of a window by results.
fn matrix<'a, T: Real>(filter: &'a View<'_, T>) -> ArrayView2<'a, T> {
    let results = filter.shape()[3];
    let elements = filter.shape()[..3].iter().product();
    let matrix = filter.view().into_shape_with_order((elements, results));
    matrix.expect("filters are contiguous")
}

/// Returns the number of windows over an image.
fn windows_of(grid: &Grid) -> usize {
    grid[0].count * grid[1].count
}

/// Convolves images with a filter.
pub fn convolve<T: Real>(
    input: View<'_, T>,
    filter: View<'_, T>,
    mut out: ViewMut<'_, T>,
    grid: Grid,
) {
    let filter = matrix(&filter);
    let (elements, results) = filter.dim();
    let wide = filter.mapv(T::widen);
    let mut unfolded = Array2::from_elem((windows_of(&grid), elements), T::Wide::ZERO);
    for index in 0..input.shape()[0] {
        let out = image_mut(&mut out, index);
        let mut out = out
            .into_shape_with_order((windows_of(&grid), results))
            .expect("results are contiguous");
        if is_trivial(&grid) {
            let input = image(&input, index);
            let input = input.into_shape_with_order((windows_of(&grid), elements));
            product::into(input.expect("images are contiguous"), filter, &mut out, false);
        } else {
            unfold(image(&input, index), &grid, &mut unfolded);
            let product = unfolded.dot(&wide);
            out.zip_mut_with(&product, |out, &wide| *out = T::narrow(wide));
        }
    }
}

/// Computes the gradient of the filter.
pub fn filter_gradient<T: Real>(
    input: View<'_, T>,
    gradient: View<'_, T>,
    mut out: ViewMut<'_, T>,
    grid: Grid,
) {
    let results = out.shape()[3];
    let elements: usize = out.shape()[..3].iter().product();
    let mut sum = Array2::from_elem((elements, results), T::Wide::ZERO);
    let mut unfolded = Array2::from_elem((windows_of(&grid), elements), T::Wide::ZERO);
    for index in 0..input.shape()[0] {
        unfold(image(&input, index), &grid, &mut unfolded);
        let gradient = results_of(&gradient, index, &grid, results);
        ndarray::linalg::general_mat_mul(
            T::Wide::ONE,
            &unfolded.t(),
            &gradient,
            T::Wide::ONE,
            &mut sum,
        );
    }
    for (out, &sum) in out.iter_mut().zip(&sum) {
        *out = T::narrow(sum);
    }
}

/// Computes the gradient of the input.
pub fn input_gradient<T: Real>(
    filter: View<'_, T>,
    gradient: View<'_, T>,
    mut out: ViewMut<'_, T>,
    grid: Grid,
) {
    let filter = matrix(&filter).mapv(T::widen);
    let results = filter.ncols();
    for index in 0..out.shape()[0] {
        let windows = results_of(&gradient, index, &grid, results).dot(&filter.t());
        let mut out = image_mut(&mut out, index);
        let mut sum = ndarray::Array3::from_elem(out.raw_dim(), T::Wide::ZERO);
        fold::<T>(&windows, &grid, &mut sum);
        out.zip_mut_with(&sum, |out, &sum| *out = T::narrow(sum));
    }
}

/// Returns the gradient for one image as a matrix: windows by results.
fn results_of<T: Real>(
    gradient: &View<'_, T>,
    index: usize,
    grid: &Grid,
    results: usize,
) -> Array2<T::Wide> {
    let gradient = image(gradient, index).mapv(T::widen);
    let gradient = gradient.into_shape_with_order((windows_of(grid), results));
    gradient.expect("the shapes were checked").into_dimensionality::<Ix2>().expect("it is a matrix")
}
