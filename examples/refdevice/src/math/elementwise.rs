//! The same for each element. Elements lie one after the other, the last axis first.

use super::{View, ViewMut};
use ndarray::Zip;

/// `f` of each element.
pub fn map<A: Copy, B>(a: &[A], out: &mut [B], f: impl Fn(A) -> B) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = f(a);
    }
}

/// `f` of each element, in its place.
pub fn map_in_place<A: Copy>(out: &mut [A], f: impl Fn(A) -> A) {
    for out in out {
        *out = f(*out);
    }
}

/// `f` of each element and the other's at the same place, in its place.
pub fn update<A: Copy, B: Copy>(out: &mut [A], b: &[B], f: impl Fn(A, B) -> A) {
    for (out, &b) in out.iter_mut().zip(b) {
        *out = f(*out, b);
    }
}

/// `f` of each two elements, broadcast to the shape of the result.
///
/// # Panics
/// When there are fewer elements than the shapes say.
pub fn zip<A: Copy, B: Copy, C>(
    a: &[A],
    b: &[B],
    out: &mut [C],
    broadcast: &Broadcast,
    f: impl Fn(A, B) -> C,
) {
    let len = broadcast.row.len;
    if len == 0 {
        return;
    }
    for (out, [a_start, b_start]) in out.chunks_exact_mut(len).zip(broadcast.rows()) {
        match broadcast.row.steps {
            [true, true] => {
                let (a, b) = (&a[a_start..][..len], &b[b_start..][..len]);
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(a, b);
                }
            }
            [true, false] => map(&a[a_start..][..len], out, |a| f(a, b[b_start])),
            [false, true] => map(&b[b_start..][..len], out, |b| f(a[a_start], b)),
            [false, false] => out.iter_mut().for_each(|out| *out = f(a[a_start], b[b_start])),
        }
    }
}

/// How two tensors are read to be broadcast to one shape: as rows, each of which steps through a tensor or
/// stays at one of its elements.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// The axes of the rows, the first first.
    outer: Vec<Axis>,
    row: Axis,
}

/// Axes that follow each other and that both tensors are read along in the same way.
#[derive(Clone, Debug)]
struct Axis {
    len: usize,
    /// Whether each tensor has this axis.
    steps: [bool; 2],
}

impl Broadcast {
    /// Of tensors of these shapes, which broadcast to `to`.
    #[must_use]
    pub fn new(a: &[usize], b: &[usize], to: &[usize]) -> Self {
        let has = |shape: &[usize], axis: usize| {
            let own = (axis + shape.len()).checked_sub(to.len());
            own.is_some_and(|own| shape[own] != 1)
        };
        let mut axes: Vec<Axis> = Vec::new();
        for (axis, &len) in to.iter().enumerate().filter(|&(_, &len)| len != 1) {
            let steps = [has(a, axis), has(b, axis)];
            match axes.last_mut() {
                Some(last) if last.steps == steps => last.len *= len,
                _ => axes.push(Axis { len, steps }),
            }
        }
        let row = axes.pop().unwrap_or(Axis { len: 1, steps: [true, true] });
        Self { outer: axes, row }
    }

    /// Where each row starts in both tensors.
    fn rows(&self) -> impl Iterator<Item = [usize; 2]> {
        let count = self.outer.iter().map(|axis| axis.len).product();
        (0..count).map(|row| {
            let mut left = row;
            let mut stride = self.row.steps.map(|step| if step { self.row.len } else { 1 });
            let mut start = [0; 2];
            for axis in self.outer.iter().rev() {
                let at = left % axis.len;
                left /= axis.len;
                for side in [0, 1].into_iter().filter(|&side| axis.steps[side]) {
                    start[side] += at * stride[side];
                    stride[side] *= axis.len;
                }
            }
            start
        })
    }
}

/// The elements of `a` where the condition holds and those of `b` elsewhere, broadcast.
pub fn select<T: Copy>(
    condition: View<'_, bool>,
    a: View<'_, T>,
    b: View<'_, T>,
    out: ViewMut<'_, T>,
) {
    let (condition, a, b) = (spread(&condition, &out), spread(&a, &out), spread(&b, &out));
    Zip::from(out)
        .and(condition)
        .and(a)
        .and(b)
        .for_each(|out, &condition, &a, &b| *out = if condition { a } else { b });
}

fn spread<'a, A, B>(a: &'a View<'_, A>, out: &ViewMut<'_, B>) -> View<'a, A> {
    a.broadcast(out.raw_dim()).expect("the shapes were checked")
}

#[cfg(test)]
mod tests {
    use super::super::shape::{broadcast, count};
    use super::super::testing::{noise, output};
    use super::*;
    use ndarray::{ArrayD, IxDyn, arr0};

    /// The difference of two tensors, and the same by ndarray.
    fn differences(a: &[usize], b: &[usize]) -> [ArrayD<f32>; 2] {
        let shape = broadcast(a, b).unwrap();
        let rows = Broadcast::new(a, b, &shape);
        let (a, b) = (noise(a), noise(b));
        let mut found = vec![f32::NAN; count(&shape)];
        let (a_slice, b_slice) = (a.as_slice().unwrap(), b.as_slice().unwrap());
        zip(a_slice, b_slice, &mut found, &rows, |a: f32, b: f32| a - b);
        let spread = |x: &ArrayD<f32>| x.broadcast(IxDyn(&shape)).unwrap().to_owned();
        [ArrayD::from_shape_vec(IxDyn(&shape), found).unwrap(), spread(&a) - spread(&b)]
    }

    #[test]
    fn elements_are_broadcast() {
        let shapes: &[(&[usize], &[usize])] = &[
            (&[], &[]),
            (&[3], &[]),
            (&[], &[2, 3]),
            (&[1], &[1, 1]),
            (&[2, 3], &[2, 3]),
            (&[2, 3], &[3]),
            (&[3], &[2, 3]),
            (&[4, 1], &[1, 5]),
            (&[4, 1, 3], &[5, 1]),
            (&[2, 1, 3, 1, 2], &[2, 4, 1, 5, 2]),
            (&[2, 3, 1, 1], &[2, 1, 4, 5]),
            (&[0, 3], &[3]),
            (&[2, 0], &[2, 1]),
            (&[0], &[]),
        ];
        for &(a, b) in shapes {
            let [found, expected] = differences(a, b);
            assert_eq!(found, expected, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn axes_that_are_read_alike_are_one() {
        let rows = Broadcast::new(&[4, 2, 3], &[2, 3], &[4, 2, 3]);
        assert_eq!((rows.row.len, rows.outer.len()), (6, 1));
        let rows = Broadcast::new(&[4, 2, 3], &[4, 2, 3], &[4, 2, 3]);
        assert_eq!((rows.row.len, rows.outer.len()), (24, 0));
    }

    #[test]
    fn each_element_is_mapped() {
        let mut out = [0; 3];
        map(&[1.0, 2.0, 3.0], &mut out, |x| x as i32 + 1);
        assert_eq!(out, [2, 3, 4]);
        map_in_place(&mut out, |x| -x);
        assert_eq!(out, [-2, -3, -4]);
        update(&mut out, &[1, 2, 3], |a, b| a * b);
        assert_eq!(out, [-2, -6, -12]);
    }

    #[test]
    fn each_element_comes_from_its_side() {
        let condition = ArrayD::from_shape_fn(IxDyn(&[2, 1]), |at| at[0] == 0);
        let (a, b) = (noise(&[2, 3]), arr0(9.0_f32).into_dyn());
        let found = output(&[2, 3], |out| select(condition.view(), a.view(), b.view(), out));
        assert_eq!(found[[0, 2]], a[[0, 2]]);
        assert_eq!(found[[1, 0]], 9.0);
    }
}
