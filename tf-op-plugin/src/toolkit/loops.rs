//! Loops over elements in host memory, which are dense and in row-major order.

use super::broadcast::Broadcast;
use super::shape::reduced_shape;
use bytemuck::Pod;
use tf_plugin_core::{Error, Result};

/// Returns bytes as elements.
///
/// # Errors
/// `INTERNAL` for bytes that are not whole, aligned elements.
pub fn elements<T: Pod>(bytes: &[u8]) -> Result<&[T]> {
    bytemuck::try_cast_slice(bytes).map_err(Error::internal)
}

/// Returns bytes as elements to write to.
///
/// # Errors
/// As for [`elements`].
pub fn elements_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    bytemuck::try_cast_slice_mut(bytes).map_err(Error::internal)
}

/// Writes `f` of each element.
pub fn map<A: Copy, B>(a: &[A], out: &mut [B], f: impl Fn(A) -> B) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = f(a);
    }
}

/// Replaces each element by `f` of it.
pub fn map_in_place<A: Copy>(out: &mut [A], f: impl Fn(A) -> A) {
    for out in out {
        *out = f(*out);
    }
}

/// Replaces each element by `f` of it and of the other at the same place.
pub fn update<A: Copy, B: Copy>(out: &mut [A], b: &[B], f: impl Fn(A, B) -> A) {
    for (out, &b) in out.iter_mut().zip(b) {
        *out = f(*out, b);
    }
}

/// Writes `f` of each pair of elements, broadcast to the shape of the result.
///
/// ```
/// use tf_op_plugin::toolkit::{Broadcast, loops};
///
/// let (rows, bias) = ([1.0, 2.0, 3.0, 4.0], [10.0, 20.0]);
/// let mut sum = [0.0; 4];
/// loops::zip(&rows, &bias, &mut sum, &Broadcast::new([&[2, 2], &[2]])?, |a, b| a + b);
/// assert_eq!(sum, [11.0, 22.0, 13.0, 24.0]);
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
///
/// # Panics
/// If there are fewer elements than the shapes say.
pub fn zip<A: Copy, B: Copy, C>(
    a: &[A],
    b: &[B],
    out: &mut [C],
    broadcast: &Broadcast<2>,
    f: impl Fn(A, B) -> C,
) {
    let row = broadcast.row();
    let len = row.len;
    if len == 0 {
        return;
    }
    for (out, [a_start, b_start]) in out.chunks_exact_mut(len).zip(broadcast.rows()) {
        match row.strides {
            [0, 0] => out.iter_mut().for_each(|out| *out = f(a[a_start], b[b_start])),
            [0, _] => map(&b[b_start..][..len], out, |b| f(a[a_start], b)),
            [_, 0] => map(&a[a_start..][..len], out, |a| f(a, b[b_start])),
            [_, _] => {
                let (a, b) = (&a[a_start..][..len], &b[b_start..][..len]);
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(a, b);
                }
            }
        }
    }
}

/// Writes the elements of `a` where the condition is not 0 and those of `b` elsewhere, broadcast.
///
/// # Panics
/// If there are fewer elements than the shapes say.
pub fn select<T: Copy>(
    condition: &[u8],
    a: &[T],
    b: &[T],
    out: &mut [T],
    broadcast: &Broadcast<3>,
) {
    let row = broadcast.row();
    for (out, starts) in out.chunks_exact_mut(row.len.max(1)).zip(broadcast.rows()) {
        let [mut c, mut a_at, mut b_at] = starts;
        for out in out {
            *out = if condition[c] != 0 { a[a_at] } else { b[b_at] };
            c += row.strides[0];
            a_at += row.strides[1];
            b_at += row.strides[2];
        }
    }
}

/// Folds the elements of a tensor along `axes`: each result starts with `start`, takes a `step` for each element, and
/// is `finish`ed. `out` has the other axes.
///
/// ```
/// use tf_op_plugin::toolkit::loops;
///
/// let matrix = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut means = [0.0_f32; 3];
/// loops::reduce(&matrix, &[2, 3], &[0], &mut means, 0.0, |sum, x| sum + f64::from(x), |sum| (sum / 2.0) as f32)?;
/// assert_eq!(means, [2.5, 3.5, 4.5]);
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
///
/// # Errors
/// `INVALID_ARGUMENT` if the lengths are not those of the shapes.
pub fn reduce<T: Copy, A: Copy, R>(
    input: &[T],
    shape: &[usize],
    axes: &[usize],
    out: &mut [R],
    start: A,
    step: impl Fn(A, T) -> A,
    finish: impl Fn(A) -> R,
) -> Result<()> {
    // The result is repeated along the axes that are reduced.
    let kept = reduced_shape(shape, axes, true);
    let (count, results) = (super::shape::count(shape), super::shape::count(&kept));
    if input.len() != count || out.len() != results {
        return Err(Error::invalid_argument(format!(
            "cannot reduce {} elements to {}: the shapes {shape:?} and {kept:?} have {count} and {results}",
            input.len(),
            out.len()
        )));
    }
    let broadcast = Broadcast::new([shape, &kept])?;
    let row = broadcast.row();
    let mut sums = vec![start; out.len()];
    if row.len > 0 {
        for (input, [_, at]) in input.chunks_exact(row.len).zip(broadcast.rows()) {
            if row.strides[1] == 0 {
                sums[at] = input.iter().fold(sums[at], |sum, &element| step(sum, element));
            } else {
                update(&mut sums[at..][..row.len], input, &step);
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = finish(sum);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::shape::count;
    use super::*;

    /// Returns pseudo-random numbers from -1 to 1, the same in each run.
    fn noise(shape: &[usize]) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(7);
        (0..count(shape)).map(|_| random.f32() * 2.0 - 1.0).collect()
    }

    /// Returns the position of the element of a dense tensor at an index of a larger shape, to which it is broadcast.
    fn place(shape: &[usize], index: &[usize]) -> usize {
        let places = index[index.len() - shape.len()..].iter().zip(shape);
        places.fold(0, |sum, (&at, &size)| sum * size + if size == 1 { 0 } else { at })
    }

    /// Returns the element at [`place`].
    fn at<T: Copy>(elements: &[T], shape: &[usize], index: &[usize]) -> T {
        elements[place(shape, index)]
    }

    /// Returns all indices of a shape, in order.
    fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
        (0..count(shape)).map(|mut place| {
            let mut index: Vec<_> = shape
                .iter()
                .rev()
                .map(|&size| {
                    let at = place % size;
                    place /= size;
                    at
                })
                .collect();
            index.reverse();
            index
        })
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
        for &(a_shape, b_shape) in shapes {
            let broadcast = Broadcast::new([a_shape, b_shape]).unwrap();
            let (a, b) = (noise(a_shape), noise(b_shape));
            let mut result = vec![f32::NAN; count(broadcast.shape())];
            zip(&a, &b, &mut result, &broadcast, |a, b| a - 2.0 * b);
            let expected = indices(broadcast.shape())
                .map(|index| at(&a, a_shape, &index) - 2.0 * at(&b, b_shape, &index));
            assert_eq!(result, expected.collect::<Vec<_>>(), "{a_shape:?} and {b_shape:?}");
        }
    }

    #[test]
    fn each_element_comes_from_its_side() {
        for [c_shape, a_shape, b_shape] in [
            [&[2, 1][..], &[2, 3], &[]],
            [&[3], &[4, 1], &[1, 3]],
            [&[], &[2, 2], &[2]],
            [&[0], &[1], &[0]],
        ] {
            let broadcast = Broadcast::new([c_shape, a_shape, b_shape]).unwrap();
            let (a, b) = (noise(a_shape), noise(b_shape));
            let c: Vec<u8> = (0..count(c_shape)).map(|at| u8::from(at % 2 == 0) * 7).collect();
            let mut result = vec![f32::NAN; count(broadcast.shape())];
            select(&c, &a, &b, &mut result, &broadcast);
            let expected = indices(broadcast.shape()).map(|index| match at(&c, c_shape, &index) {
                0 => at(&b, b_shape, &index),
                _ => at(&a, a_shape, &index),
            });
            assert_eq!(result, expected.collect::<Vec<_>>(), "{c_shape:?}");
        }
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

    fn sums(input: &[f32], shape: &[usize], axes: &[usize], start: f32) -> Vec<f32> {
        let mut out = vec![f32::NAN; count(&reduced_shape(shape, axes, false))];
        reduce(input, shape, axes, &mut out, start, |sum, x| sum + x, |sum| sum).unwrap();
        out
    }

    #[test]
    fn any_axes_are_summed() {
        let shape = [3, 4, 5];
        let input = noise(&shape);
        for axes in [&[][..], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
            let kept = reduced_shape(&shape, axes, true);
            let mut expected = vec![0.0; count(&kept)];
            for index in indices(&shape) {
                expected[place(&kept, &index)] += at(&input, &shape, &index);
            }
            assert_eq!(sums(&input, &shape, axes, 0.0), expected, "{axes:?}");
        }
        assert_eq!(sums(&[5.0], &[], &[], 0.0), [5.0]);
        assert_eq!(sums(&[5.0, 6.0], &[1, 2, 1], &[0, 2], 0.0), [5.0, 6.0]);
    }

    #[test]
    fn what_is_empty_has_the_start() {
        assert_eq!(sums(&[], &[0, 3], &[0], 7.0), [7.0; 3]);
        assert_eq!(sums(&[], &[3, 0], &[1], 7.0), [7.0; 3]);
        assert_eq!(sums(&[], &[0], &[0], 7.0), [7.0]);
        // An empty tensor may have any length along another axis.
        assert!(sums(&[], &[1 << 40, 0], &[0], 7.0).is_empty());
        assert!(sums(&[], &[0, 3], &[1], 7.0).is_empty());
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let mut out = [0.0];
        let error = reduce(&[1.0, 2.0], &[3], &[0], &mut out, 0.0, |sum, x| sum + x, |sum| sum);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("cannot reduce 2 elements to 1"), "{error}");
    }
}
