//! Shapes of results.

use se_plugin::{Error, Result};

/// A shape.
pub type Shape = Vec<usize>;

/// The shape as TensorFlow has it.
#[must_use]
pub fn to_host(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&size| size as i64).collect()
}

/// The shape that TensorFlow has.
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

/// The number of elements.
#[must_use]
pub fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// The shape that both are broadcast to.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is none.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape> {
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

/// Whether `from` broadcasts to `to`.
#[must_use]
pub fn broadcasts_to(from: &[usize], to: &[usize]) -> bool {
    broadcast(from, to).is_ok_and(|shape| shape == to)
}

/// An axis, counted from the end if it is negative.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such axis.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_start).ok().filter(|&axis| axis < rank).ok_or_else(|| {
        Error::invalid_argument(format!("there is no axis {axis} in a tensor of rank {rank}"))
    })
}

/// The axes of a reduction, in order and each once.
///
/// # Errors
/// `INVALID_ARGUMENT` if there is no such axis, or it is named twice.
pub fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut found = axes.iter().map(|&one| axis(one, rank)).collect::<Result<Vec<_>>>()?;
    found.sort_unstable();
    let len = found.len();
    found.dedup();
    if found.len() < len {
        return Err(Error::invalid_argument(format!(
            "Invalid reduction arguments: Axes contains duplicate dimension: {axes:?}"
        )));
    }
    Ok(found)
}

/// The shape without some axes, or, with `keep`, with 1 in their place.
#[must_use]
pub fn reduced(shape: &[usize], axes: &[usize], keep: bool) -> Shape {
    let sizes = shape.iter().enumerate();
    let sizes = sizes.filter_map(|(axis, &size)| match axes.contains(&axis) {
        true => keep.then_some(1),
        false => Some(size),
    });
    sizes.collect()
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
            assert_eq!(broadcast(a, b).unwrap(), both);
            assert_eq!(broadcast(b, a).unwrap(), both);
        }
        assert!(broadcast(&[2], &[3]).is_err() && broadcast(&[0], &[2]).is_err());
        assert!(broadcasts_to(&[1], &[0]) && !broadcasts_to(&[2, 1], &[2]));
    }

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!(axes(&[-1, 0], 3).unwrap(), [0, 2]);
        assert!(axes(&[3], 3).is_err() && axes(&[-4], 3).is_err() && axes(&[0, -3], 3).is_err());
        assert_eq!(reduced(&[2, 3, 4], &[0, 2], false), [3]);
        assert_eq!(reduced(&[2, 3, 4], &[0, 2], true), [1, 3, 1]);
    }
}
