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

/// Computes the mean of each window over its elements within the input.
pub fn mean<T: Real>(input: View<'_, T>, mut out: ViewMut<'_, T>, grid: Grid) {
    for (at, out) in out.indexed_iter_mut() {
        let (mut sum, mut count) = (0.0, 0.0);
        window(&grid, at[1], at[2], |row, column| {
            sum += input[[at[0], row, column, at[3]]].to_f64();
            count += 1.0;
        });
        *out = T::from_f64(sum / count);
    }
}

/// Computes the gradient of [`mean`].
pub fn mean_gradient<T: Real>(gradient: View<'_, T>, mut out: ViewMut<'_, T>, grid: Grid) {
    let mut sums = ArrayD::from_elem(out.raw_dim(), 0.0);
    for (at, gradient) in gradient.indexed_iter() {
        let mut count = 0.0;
        window(&grid, at[1], at[2], |_, _| count += 1.0);
        window(&grid, at[1], at[2], |row, column| {
            sums[[at[0], row, column, at[3]]] += gradient.to_f64() / count;
        });
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
    use super::super::testing::{assert_close, noise, output};
    use super::*;
    use ndarray::{IxDyn, arr1};

    fn grid(size: usize, stride: usize, padding: Padding) -> Grid {
        [5, 6].map(|input| Windows::new(input, size, stride, 1, padding).unwrap())
    }

    #[test]
    fn pools_are_of_their_windows() {
        let x = noise(&[2, 5, 6, 3]);
        for (size, stride, padding) in
            [(2, 2, Padding::Valid), (3, 2, Padding::Same), (2, 1, Padding::Same)]
        {
            let grid = grid(size, stride, padding);
            let shape = [2, grid[0].count, grid[1].count, 3];
            let dy = noise(&shape);
            let [mut max, mut avg] = [(); 2].map(|()| ArrayD::<f32>::zeros(IxDyn(&shape)));
            let [mut dmax, mut davg] = [(); 2].map(|()| ArrayD::<f32>::zeros(IxDyn(x.shape())));
            for (at, &dy) in dy.indexed_iter() {
                let within = |down: usize, before: usize, size: usize, input: usize| {
                    let start = (down * stride) as isize - before as isize;
                    (start.max(0) as usize)..((start + size as isize).min(input as isize) as usize)
                };
                let rows = within(at[1], grid[0].before, size, 5);
                let columns = within(at[2], grid[1].before, size, 6);
                let places: Vec<_> = rows
                    .flat_map(|row| columns.clone().map(move |column| (row, column)))
                    .map(|(row, column)| [at[0], row, column, at[3]])
                    .collect();
                let best = places.iter().max_by(|a, b| x[&a[..]].total_cmp(&x[&b[..]])).unwrap();
                max[at.clone()] = x[&best[..]];
                dmax[&best[..]] += dy;
                for place in &places {
                    avg[at.clone()] += x[&place[..]] / places.len() as f32;
                    davg[&place[..]] += dy / places.len() as f32;
                }
            }
            assert_close(output(&shape, |out| greatest(x.view(), out, grid)).view(), max.view());
            assert_close(output(&shape, |out| mean(x.view(), out, grid)).view(), avg.view());
            let found = output(x.shape(), |out| greatest_gradient(x.view(), dy.view(), out, grid));
            assert_close(found.view(), dmax.view());
            let found = output(x.shape(), |out| mean_gradient(dy.view(), out, grid));
            assert_close(found.view(), davg.view());
        }
    }

    #[test]
    fn nan_is_skipped() {
        let grid = [(1, 1), (3, 2)]
            .map(|(input, size)| Windows::new(input, size, 1, 1, Padding::Valid).unwrap());
        for (x, expected) in
            [([1.0, f32::NAN, 0.0], [1.0, 0.0]), ([f32::NAN, 1.0, 2.0], [1.0, 2.0])]
        {
            let x = arr1(&x).into_shape_with_order(IxDyn(&[1, 1, 3, 1])).unwrap();
            let found = output(&[1, 1, 2, 1], |out| greatest(x.view(), out, grid));
            assert_eq!(found.iter().copied().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn of_equals_the_first_gets_the_gradient() {
        let x = ArrayD::from_elem(IxDyn(&[1, 1, 2, 1]), 3.0_f32);
        let dy = arr1(&[7.0_f32]).into_shape_with_order(IxDyn(&[1, 1, 1, 1])).unwrap();
        let grid = [(1, 1), (2, 2)]
            .map(|(input, size)| Windows::new(input, size, 1, 1, Padding::Valid).unwrap());
        let found = output(&[1, 1, 2, 1], |out| greatest_gradient(x.view(), dy.view(), out, grid));
        assert_eq!((found[[0, 0, 0, 0]], found[[0, 0, 1, 0]]), (7.0, 0.0));
    }
}
