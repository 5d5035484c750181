//! What the tests of the functions share.

use super::{View, ViewMut};
use ndarray::{ArrayD, IxDyn};

/// Numbers without a pattern, from -1 to 1, always the same.
pub(super) fn noise(shape: &[usize]) -> ArrayD<f32> {
    let mut state = 0x2545_f491_u32;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    })
}

/// Runs a function on an output of this shape, which is junk before.
pub(super) fn output(shape: &[usize], body: impl FnOnce(ViewMut<'_, f32>)) -> ArrayD<f32> {
    let mut out = ArrayD::from_elem(IxDyn(shape), f32::NAN);
    body(out.view_mut());
    out
}

/// Panics unless the two are the same except for rounding.
#[track_caller]
pub(super) fn assert_close(found: View<'_, f32>, expected: View<'_, f32>) {
    assert_eq!(found.shape(), expected.shape());
    for (at, &expected) in expected.indexed_iter() {
        let found = found[at.clone()];
        let is_close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
        assert!(is_close || found == expected, "{found} and not {expected} at {at:?}");
    }
}

/// A row of numbers.
pub(super) fn row(numbers: &[f32]) -> ArrayD<f32> {
    ArrayD::from_shape_vec(IxDyn(&[numbers.len()]), numbers.to_vec()).expect("it has this length")
}
