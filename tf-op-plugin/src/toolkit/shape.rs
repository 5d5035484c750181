//! Shape inference: the shapes of results, and the axes that arguments name.
//!
//! Sizes are `usize` here and `i64` in TensorFlow: [`from_host`] and [`to_host`] convert.

use tf_plugin_core::{Error, Result};

/// A shape: the size of each axis.
pub type Shape = Vec<usize>;

/// Converts a shape to TensorFlow's type.
#[must_use]
pub fn to_host(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&size| size as i64).collect()
}

/// Converts a shape of TensorFlow's.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative size.
pub fn from_host(shape: &[i64]) -> Result<Shape> {
    let size = |&size| {
        usize::try_from(size).map_err(|_| {
            Error::invalid_argument(format!("{size} is not a size, in the shape {shape:?}"))
        })
    };
    shape.iter().map(size).collect()
}

/// Returns the number of elements.
#[must_use]
pub fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Returns the number of elements, or `None` if it does not fit into a `usize`.
pub(super) fn checked_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))
}

/// Returns the shape that both are broadcast to: axes are matched from the last one on, and a size of 1 is
/// repeated.
///
/// ```
/// use tf_op_plugin::toolkit::shape::broadcast_shape;
///
/// assert_eq!(broadcast_shape(&[17, 8], &[])?, [17, 8]);
/// assert_eq!(broadcast_shape(&[4, 1], &[1, 5])?, [4, 5]);
/// assert!(broadcast_shape(&[2], &[3]).is_err());
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such shape.
pub fn broadcast_shape(a: &[usize], b: &[usize]) -> Result<Shape> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let sizes = (0..rank).map(|axis| match (size(a, axis), size(b, axis)) {
        (1, other) | (other, 1) => Ok(other),
        (one, other) if one == other => Ok(one),
        _ => Err(Error::invalid_argument(format!("Incompatible shapes: {a:?} vs. {b:?}"))),
    });
    sizes.collect()
}

/// Returns whether `from` broadcasts to `to`.
#[must_use]
pub fn broadcasts_to(from: &[usize], to: &[usize]) -> bool {
    broadcast_shape(from, to).is_ok_and(|shape| shape == to)
}

/// Returns the number of an axis, which is counted from the end if it is negative.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such axis.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_start).ok().filter(|&axis| axis < rank).ok_or_else(|| {
        Error::invalid_argument(format!("there is no axis {axis} in a tensor of rank {rank}"))
    })
}

/// Returns the axes of a reduction, sorted.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such axis, or it is named twice.
pub fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut sorted = axes.iter().map(|&one| axis(one, rank)).collect::<Result<Vec<_>>>()?;
    sorted.sort_unstable();
    let len = sorted.len();
    sorted.dedup();
    if sorted.len() < len {
        return Err(Error::invalid_argument(format!(
            "Invalid reduction arguments: Axes contains duplicate dimension: {axes:?}"
        )));
    }
    Ok(sorted)
}

/// Returns the shape without some axes or, with `keep_dims`, with 1 in their place.
///
/// A reduction reads and writes by the [`Broadcast`](super::Broadcast) of the input's shape and the one with
/// `keep_dims`: the result is repeated along the axes that are reduced.
#[must_use]
pub fn reduced_shape(shape: &[usize], axes: &[usize], keep_dims: bool) -> Shape {
    let sizes = shape.iter().enumerate();
    let sizes = sizes.filter_map(|(axis, &size)| match axes.contains(&axis) {
        true => keep_dims.then_some(1),
        false => Some(size),
    });
    sizes.collect()
}

/// Returns the shape of the products of matrices in the last two axes, each of which may be transposed first. The other
/// axes are broadcast.
///
/// ```
/// use tf_op_plugin::toolkit::shape::matmul_shape;
///
/// assert_eq!(matmul_shape(&[2, 3], &[3, 5], false, false)?, [2, 5]);
/// assert_eq!(matmul_shape(&[7, 3, 2], &[3, 5], true, false)?, [7, 2, 5]);
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
///
/// # Errors
/// `INVALID_ARGUMENT` if the matrices do not fit together.
pub fn matmul_shape(
    a: &[usize],
    b: &[usize],
    transpose_a: bool,
    transpose_b: bool,
) -> Result<Shape> {
    let unsuitable = || {
        Error::invalid_argument(format!(
            "Matrix size-incompatible: In[0]: {a:?}, In[1]: {b:?} (transposed: {transpose_a}, {transpose_b})"
        ))
    };
    let split = |shape: &[usize], transpose: bool| -> Result<(Shape, usize, usize)> {
        let [batches @ .., rows, columns] = shape else { return Err(unsuitable()) };
        let (rows, columns) = if transpose { (columns, rows) } else { (rows, columns) };
        Ok((batches.to_vec(), *rows, *columns))
    };
    let (a_batches, rows, inner) = split(a, transpose_a)?;
    let (b_batches, other, columns) = split(b, transpose_b)?;
    if inner != other {
        return Err(unsuitable());
    }
    let mut out = broadcast_shape(&a_batches, &b_batches)?;
    out.extend([rows, columns]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_end() {
        for (a, b, both) in [
            (&[2, 3][..], &[3][..], &[2, 3][..]),
            (&[], &[4, 1], &[4, 1]),
            (&[4, 1], &[1, 5], &[4, 5]),
            (&[0], &[1], &[0]),
            (&[2, 0], &[1, 1], &[2, 0]),
        ] {
            assert_eq!(broadcast_shape(a, b).unwrap(), both);
            assert_eq!(broadcast_shape(b, a).unwrap(), both);
        }
        assert!(broadcast_shape(&[2], &[3]).is_err() && broadcast_shape(&[0], &[2]).is_err());
        assert!(broadcasts_to(&[1], &[0]) && !broadcasts_to(&[2, 1], &[2]));
    }

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!(axes(&[-1, 0], 3).unwrap(), [0, 2]);
        assert!(axes(&[3], 3).is_err() && axes(&[-4], 3).is_err() && axes(&[0, -3], 3).is_err());
        assert_eq!(reduced_shape(&[2, 3, 4], &[0, 2], false), [3]);
        assert_eq!(reduced_shape(&[2, 3, 4], &[0, 2], true), [1, 3, 1]);
    }
    #[test]
    fn products_of_matrices_have_rows_and_columns() {
        assert_eq!(matmul_shape(&[3, 2], &[5, 3], true, true).unwrap(), [2, 5]);
        assert_eq!(matmul_shape(&[4, 1, 2, 3], &[6, 3, 5], false, false).unwrap(), [4, 6, 2, 5]);
        assert_eq!(matmul_shape(&[2, 1, 3], &[3, 4], false, false).unwrap(), [2, 1, 4]);
        for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[3], &[3, 1]), (&[2, 1, 3], &[4, 3, 1])] {
            assert!(matmul_shape(a, b, false, false).is_err(), "{a:?} {b:?}");
        }
    }
}
