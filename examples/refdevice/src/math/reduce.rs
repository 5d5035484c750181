//! Reductions over axes.

use super::{View, ViewMut};
use ndarray::{ArrayD, Axis, Zip};

/// Folds the elements along `axes`, which are in order: each result starts with `start`, takes a `step` for
/// each element, and is `finish`ed. `out` has the other axes.
pub fn reduce<T: Copy, A: Copy, R>(
    input: View<'_, T>,
    axes: &[usize],
    mut out: ViewMut<'_, R>,
    start: A,
    step: impl Fn(A, T) -> A,
    finish: impl Fn(A) -> R,
) {
    // What is empty may be as long as it likes along another axis.
    if input.is_empty() {
        return out.iter_mut().for_each(|out| *out = finish(start));
    }
    let kept = (0..input.ndim()).filter(|axis| !axes.contains(axis));
    // Along the axis in which neighbours are neighbours in memory, the work is fast.
    let is_last_kept = input.ndim() > 0 && !axes.contains(&(input.ndim() - 1)) && !axes.is_empty();
    if is_last_kept {
        let order: Vec<_> = axes.iter().copied().chain(kept).collect();
        let mut sums = ArrayD::from_elem(out.raw_dim(), start);
        each(input.permuted_axes(order), axes.len(), &mut |row| {
            Zip::from(&mut sums).and(row).for_each(|sum, &element| *sum = step(*sum, element));
        });
        Zip::from(&mut out).and(&sums).for_each(|out, &sum| *out = finish(sum));
    } else {
        let order: Vec<_> = kept.chain(axes.iter().copied()).collect();
        let depth = out.ndim();
        let mut out = out.iter_mut();
        each(input.permuted_axes(order), depth, &mut |lane| {
            let sum = lane.iter().fold(start, |sum, &element| step(sum, element));
            if let Some(out) = out.next() {
                *out = finish(sum);
            }
        });
    }
}

/// Calls `body` for each index along the first `depth` axes.
fn each<T>(view: View<'_, T>, depth: usize, body: &mut impl FnMut(View<'_, T>)) {
    if depth == 0 {
        return body(view);
    }
    for part in view.axis_iter(Axis(0)) {
        each(part, depth - 1, body);
    }
}

/// The position of the greatest element along an axis, or of the smallest; of several, of the first.
pub fn position<T: Copy, I>(
    input: View<'_, T>,
    axis: usize,
    out: ViewMut<'_, I>,
    is_better: impl Fn(T, T) -> bool,
    index: impl Fn(usize) -> I,
) {
    Zip::from(out).and(input.lanes(Axis(axis))).for_each(|out, lane| {
        let mut best = 0;
        for (at, &element) in lane.iter().enumerate() {
            if is_better(element, lane[best]) {
                best = at;
            }
        }
        *out = index(best);
    });
}

/// The running results along an axis: of what is before each element and, unless `exclusive`, itself. With
/// `reverse`, of what is behind.
pub fn scan<T: Copy>(
    input: View<'_, T>,
    axis: usize,
    out: ViewMut<'_, T>,
    (exclusive, reverse): (bool, bool),
    start: T,
    step: impl Fn(T, T) -> T,
) {
    let (mut input, mut out) = (input, out);
    if reverse {
        input.invert_axis(Axis(axis));
        out.invert_axis(Axis(axis));
    }
    Zip::from(out.lanes_mut(Axis(axis))).and(input.lanes(Axis(axis))).for_each(|out, lane| {
        let mut sum = start;
        Zip::from(out).and(lane).for_each(|out, &element| {
            let after = step(sum, element);
            *out = if exclusive { sum } else { after };
            sum = after;
        });
    });
}

/// The sums of the elements along all axes but the last: the gradient of a bias.
pub fn sum_to_last<T: super::number::Real>(input: View<'_, T>, out: ViewMut<'_, T>) {
    let axes: Vec<_> = (0..input.ndim().saturating_sub(1)).collect();
    reduce(input, &axes, out, 0.0, |sum, element| sum + element.as_f64(), T::of_f64);
}

#[cfg(test)]
mod tests {
    use super::super::shape::reduced;
    use super::super::testing::{assert_close, noise, output};
    use super::*;
    use ndarray::IxDyn;

    #[test]
    fn any_axes_are_summed() {
        let input = noise(&[3, 4, 5]);
        for axes in [&[][..], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
            let shape = reduced(input.shape(), axes, false);
            let mut expected = ArrayD::<f32>::zeros(IxDyn(&shape));
            for (at, element) in input.indexed_iter() {
                let kept: Vec<_> =
                    (0..3).filter(|axis| !axes.contains(axis)).map(|axis| at[axis]).collect();
                expected[&kept[..]] += element;
            }
            let found = output(&shape, |out| {
                reduce(input.view(), axes, out, 0.0, |sum, x| sum + x, |sum| sum);
            });
            assert_close(found.view(), expected.view());
        }
    }

    #[test]
    fn what_is_empty_has_the_start() {
        for (shape, axes, out) in
            [(&[0, 3][..], &[0][..], &[3][..]), (&[3, 0], &[1], &[3]), (&[0], &[0], &[])]
        {
            let found = output(out, |out| {
                reduce(noise(shape).view(), axes, out, 7.0, |sum, x| sum + x, |sum| sum);
            });
            assert!(found.iter().all(|&x| x == 7.0), "{shape:?}");
        }
        output(&[0], |out| {
            let empty = ArrayD::<f32>::zeros(IxDyn(&[1 << 40, 0]));
            reduce(empty.view(), &[0], out, 7.0, |sum, x| sum + x, |sum| sum);
        });
        let none = output(&[0], |out| {
            reduce(noise(&[0, 3]).view(), &[1], out, 7.0, |sum, x| sum + x, |sum| sum);
        });
        assert!(none.is_empty());
        let scalar = output(&[], |out| {
            reduce(noise(&[]).view(), &[], out, 0.0, |sum, x| sum + x, |sum| sum);
        });
        assert_eq!(scalar, noise(&[]));
    }

    #[test]
    fn positions_are_of_the_first() {
        let input = ndarray::arr2(&[[1.0, 5.0, 5.0], [4.0, 0.0, 3.0]]).into_dyn();
        for (axis, expected) in [(0, vec![1.0, 0.0, 0.0]), (1, vec![1.0, 0.0])] {
            let found = output(&[expected.len()], |out| {
                position(input.view(), axis, out, |a: f32, b| a > b, |at| at as f32);
            });
            assert_eq!(found.into_raw_vec_and_offset().0, expected);
        }
    }

    #[test]
    fn sums_run_in_either_direction() {
        let input = ndarray::arr2(&[[1.0, 2.0, 4.0]]).into_dyn();
        for (exclusive, reverse, expected) in [
            (false, false, [1.0, 3.0, 7.0]),
            (true, false, [0.0, 1.0, 3.0]),
            (false, true, [7.0, 6.0, 4.0]),
            (true, true, [6.0, 4.0, 0.0]),
        ] {
            let found = output(&[1, 3], |out| {
                scan(input.view(), 1, out, (exclusive, reverse), 0.0_f32, |a, b| a + b);
            });
            assert_eq!(found.into_raw_vec_and_offset().0, expected);
        }
    }
}
