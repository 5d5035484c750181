//! Positions and running results along an axis.

use super::{View, ViewMut};
use ndarray::{Axis, Zip};

/// Finds the position of the best element along an axis, by `is_better`; of several equal ones, the first.
/// It is 0 if no element is better than `start`.
pub fn position<T: Copy, I>(
    input: View<'_, T>,
    axis: usize,
    out: ViewMut<'_, I>,
    start: T,
    is_better: impl Fn(T, T) -> bool,
    index: impl Fn(usize) -> I,
) {
    Zip::from(out).and(input.lanes(Axis(axis))).for_each(|out, lane| {
        let mut best = (0, start);
        for (at, &element) in lane.iter().enumerate() {
            if is_better(element, best.1) {
                best = (at, element);
            }
        }
        *out = index(best.0);
    });
}

/// Computes running results along an axis: over the elements before each element and, unless `exclusive`, itself.
/// With `reverse`, over those behind it.
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

#[cfg(test)]
mod tests {
    use super::super::testing::output;
    use super::*;

    #[test]
    fn positions_are_of_the_first() {
        let input = ndarray::arr2(&[[1.0, 5.0, 5.0], [4.0, 0.0, 3.0]]).into_dyn();
        for (axis, expected) in [(0, vec![1.0, 0.0, 0.0]), (1, vec![1.0, 0.0])] {
            let found = output(&[expected.len()], |out| {
                position(input.view(), axis, out, f32::MIN, |a: f32, b| a > b, |at| at as f32);
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
