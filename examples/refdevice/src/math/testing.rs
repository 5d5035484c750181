//! Helpers of the unit tests.

use super::{View, ViewMut};
use ndarray::{ArrayD, IxDyn};

/// Returns pseudo-random numbers from -1 to 1, the same in each run.
pub(super) fn noise(shape: &[usize]) -> ArrayD<f32> {
    let mut state = 0x2545_f491_u32;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    })
}

/// Runs a function on an output of this shape, which is filled with NaN first.
pub(super) fn output(shape: &[usize], body: impl FnOnce(ViewMut<'_, f32>)) -> ArrayD<f32> {
    let mut out = ArrayD::from_elem(IxDyn(shape), f32::NAN);
    body(out.view_mut());
    out
}

/// Panics unless the two tensors are equal except for rounding.
#[track_caller]
pub(super) fn assert_close(found: View<'_, f32>, expected: View<'_, f32>) {
    assert_eq!(found.shape(), expected.shape());
    for (at, &expected) in expected.indexed_iter() {
        let found = found[at.clone()];
        let is_close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
        assert!(is_close || found == expected, "{found} and not {expected} at {at:?}");
    }
}

/// Returns a tensor with one axis.
pub(super) fn row(numbers: &[f32]) -> ArrayD<f32> {
    ArrayD::from_shape_vec(IxDyn(&[numbers.len()]), numbers.to_vec()).expect("it has this length")
}
