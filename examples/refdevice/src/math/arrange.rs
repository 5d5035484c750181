//! Functions that move elements.

use super::{View, ViewMut};
use ndarray::{Axis, IxDyn, Slice};
use se_plugin::toolkit::slice::Steps;

/// Broadcasts the elements to the shape of the result.
pub fn broadcast<T: Copy>(a: View<'_, T>, mut out: ViewMut<'_, T>) {
    let a = a.broadcast(out.raw_dim()).expect("the shapes were checked");
    out.assign(&a);
}

/// Permutes the axes: axis `i` of the result is axis `order[i]`.
pub fn transpose<T: Copy>(a: View<'_, T>, mut out: ViewMut<'_, T>, order: &[usize]) {
    out.assign(&a.permuted_axes(order));
}

/// Repeats the elements along each axis to fill the result, whose sizes are multiples of the input's.
pub fn tile<T: Copy>(a: View<'_, T>, out: ViewMut<'_, T>) {
    // Each axis becomes two: the copy, and the index in it.
    let multiples = out.shape().iter().zip(a.shape());
    let shape: Vec<_> =
        multiples.flat_map(|(&all, &one)| [all.checked_div(one).unwrap_or(0), one]).collect();
    if out.is_empty() {
        return;
    }
    let mut out = out.into_shape_with_order(IxDyn(&shape)).expect("it has as many elements");
    let mut a = a;
    for axis in 0..a.ndim() {
        a = a.insert_axis(Axis(2 * axis));
    }
    out.assign(&a.broadcast(IxDyn(&shape)).expect("copies are alike"));
}

/// Concatenates the tensors along an axis.
pub fn concatenate<T: Copy>(parts: &[View<'_, T>], mut out: ViewMut<'_, T>, axis: usize) {
    let mut start = 0;
    for part in parts {
        let end = start + part.shape()[axis];
        out.slice_axis_mut(Axis(axis), Slice::from(start..end)).assign(part);
        start = end;
    }
}

/// Packs the tensors along a new axis.
pub fn pack<T: Copy>(parts: &[View<'_, T>], mut out: ViewMut<'_, T>, axis: usize) {
    for (out, part) in out.axis_iter_mut(Axis(axis)).zip(parts) {
        let mut out = out;
        out.assign(part);
    }
}

/// Unpacks an axis into tensors.
pub fn unpack<T: Copy>(a: View<'_, T>, outs: Vec<ViewMut<'_, T>>, axis: usize) {
    for (mut out, part) in outs.into_iter().zip(a.axis_iter(Axis(axis))) {
        out.assign(&part);
    }
}

/// Converts steps to a slice of ndarray.
fn indices(steps: Steps) -> Slice {
    let Steps { start, count, step } = steps;
    if count == 0 {
        return Slice::from(0..0);
    }
    let length = (count - 1) * step.unsigned_abs();
    // A negative step starts from the end.
    let (first, last) = if step > 0 { (start, start + length) } else { (start - length, start) };
    Slice::new(first as isize, Some(last as isize + 1), step)
}

/// Copies the elements at some indices of each axis.
pub fn slice<T: Copy>(a: View<'_, T>, mut out: ViewMut<'_, T>, steps: &[Steps]) {
    let part = a.slice_each_axis(|axis| indices(steps[axis.axis.index()]));
    out.assign(&part);
}

/// Puts elements at some indices of each axis and leaves the others.
pub fn place<T: Copy>(a: View<'_, T>, mut out: ViewMut<'_, T>, steps: &[Steps]) {
    out.slice_each_axis_mut(|axis| indices(steps[axis.axis.index()])).assign(&a);
}

/// Pads the elements with `value`: `before[i]` times at the start of axis `i`, and at its end up to the result's size.
pub fn pad<T: Copy>(a: View<'_, T>, mut out: ViewMut<'_, T>, before: &[usize], value: T) {
    out.fill(value);
    let sizes = a.shape().to_vec();
    let steps: Vec<_> =
        before.iter().zip(sizes).map(|(&start, count)| Steps::range(start, count)).collect();
    place(a, out, &steps);
}

/// Reverses the elements along some axes.
pub fn reverse<T: Copy>(mut a: View<'_, T>, mut out: ViewMut<'_, T>, axes: &[usize]) {
    for &axis in axes {
        a.invert_axis(Axis(axis));
    }
    out.assign(&a);
}

/// Gathers the elements at the indices along an axis, for each batch. An index out of range gives `missing`.
/// `params` is `[batch, outer, axis, inner]`, `indices` is `[batch, index]`, the result
/// `[batch, outer, index, inner]`.
pub fn gather<T: Copy>(
    params: View<'_, T>,
    indices: View<'_, i64>,
    mut out: ViewMut<'_, T>,
    missing: T,
) {
    for (batch, mut out) in out.axis_iter_mut(Axis(0)).enumerate() {
        let (params, indices) =
            (params.index_axis(Axis(0), batch), indices.index_axis(Axis(0), batch));
        for (mut out, &index) in out.axis_iter_mut(Axis(1)).zip(indices.iter()) {
            match usize::try_from(index).ok().filter(|&index| index < params.shape()[1]) {
                Some(index) => out.assign(&params.index_axis(Axis(1), index)),
                None => out.fill(missing),
            }
        }
    }
}

/// Writes `on` at the index and `off` elsewhere. `indices` is `[outer, inner]`, the result
/// `[outer, depth, inner]`.
pub fn one_hot<T: Copy>(indices: View<'_, i64>, mut out: ViewMut<'_, T>, on: T, off: T) {
    // An empty result may be very deep, and needs no loop.
    if out.is_empty() {
        return;
    }
    for (depth, out) in out.axis_iter_mut(Axis(1)).enumerate() {
        ndarray::Zip::from(out).and(&indices).for_each(|out, &index| {
            *out = if usize::try_from(index) == Ok(depth) { on } else { off };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{noise, output, row};
    use super::*;
    use ndarray::{ArrayD, arr2};

    #[test]
    fn axes_change_places() {
        let a = noise(&[2, 3, 4]);
        let found = output(&[4, 2, 3], |out| transpose(a.view(), out, &[2, 0, 1]));
        for (at, &element) in a.indexed_iter() {
            assert_eq!(found[[at[2], at[0], at[1]]], element);
        }
        output(&[0, 2], |out| transpose(noise(&[2, 0]).view(), out, &[1, 0]));
    }

    #[test]
    fn tiles_repeat() {
        let a = noise(&[2, 3]);
        let found = output(&[4, 9], |out| tile(a.view(), out));
        for (at, &element) in found.indexed_iter() {
            assert_eq!(element, a[[at[0] % 2, at[1] % 3]]);
        }
        for (shape, out) in [(&[2, 3][..], &[0, 3][..]), (&[0, 3], &[0, 6]), (&[], &[])] {
            output(out, |out| tile(noise(shape).view(), out));
        }
    }

    #[test]
    fn parts_come_together_and_apart() {
        let (a, b) = (noise(&[2, 3]), noise(&[2, 1]));
        let found = output(&[2, 4], |out| concatenate(&[a.view(), b.view()], out, 1));
        assert_eq!((found[[1, 2]], found[[1, 3]]), (a[[1, 2]], b[[1, 0]]));
        let packed = output(&[2, 2, 3], |out| pack(&[a.view(), a.view()], out, 1));
        assert_eq!(packed[[1, 0, 2]], a[[1, 2]]);
        let mut apart = [(); 2].map(|()| ArrayD::<f32>::zeros(IxDyn(&[2, 3])));
        let outs = apart.iter_mut().map(|part| part.view_mut()).collect();
        unpack(packed.view(), outs, 1);
        assert_eq!(apart, [a.clone(), a]);
    }

    #[test]
    fn slices_go_either_way() {
        let a = row(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        for (start, count, step, expected) in [
            (1, 3, 1, &[1.0, 2.0, 3.0][..]),
            (0, 3, 2, &[0.0, 2.0, 4.0]),
            (5, 3, -2, &[5.0, 3.0, 1.0]),
            (2, 3, -1, &[2.0, 1.0, 0.0]),
            (4, 1, 100, &[4.0]),
            (6, 0, 1, &[]),
        ] {
            let steps = [Steps { start, count, step }];
            let found = output(&[count], |out| slice(a.view(), out, &steps));
            assert_eq!(found.as_slice().unwrap(), expected);
            let mut all = row(&[9.0; 6]);
            place(found.view(), all.view_mut(), &steps);
            for (at, &element) in all.indexed_iter() {
                assert!(element == 9.0 || element == a[at.clone()]);
            }
            assert_eq!(all.iter().filter(|&&element| element != 9.0).count(), count);
        }
    }

    #[test]
    fn padding_is_around() {
        let a = arr2(&[[1.0, 2.0]]).into_dyn();
        let found = output(&[3, 4], |out| pad(a.view(), out, &[1, 0], 5.0));
        let expected =
            arr2(&[[5.0, 5.0, 5.0, 5.0], [1.0, 2.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0]]).into_dyn();
        assert_eq!(found, expected);
        let back = output(&[1, 2], |out| reverse(a.view(), out, &[1]));
        assert_eq!(back, arr2(&[[2.0, 1.0]]).into_dyn());
    }

    #[test]
    fn missing_indices_get_a_value() {
        let params = noise(&[1, 2, 3, 4]);
        let indices = ArrayD::from_shape_vec(IxDyn(&[1, 3]), vec![2, -1, 3]).unwrap();
        let found = output(&[1, 2, 3, 4], |out| gather(params.view(), indices.view(), out, 0.0));
        assert_eq!(found[[0, 1, 0, 3]], params[[0, 1, 2, 3]]);
        assert_eq!((found[[0, 1, 1, 3]], found[[0, 0, 2, 0]]), (0.0, 0.0));
        let hot = output(&[1, 3, 3], |out| one_hot(indices.view(), out, 1.0, 0.0));
        assert_eq!(hot.sum(), 1.0);
        assert_eq!(hot[[0, 2, 0]], 1.0);
        let none = ArrayD::zeros(IxDyn(&[1, 0]));
        output(&[1, 1 << 40, 0], |out| one_hot(none.view(), out, 1.0, 0.0));
    }
}
