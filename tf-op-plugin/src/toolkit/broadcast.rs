//! Broadcasting: how tensors of several shapes are read as tensors of one shape.

use super::shape::{Shape, broadcast_shape, checked_count};
use tf_plugin_core::{Error, Result};

/// An axis of a [`Broadcast`], with the stride of each tensor along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides<const N: usize> {
    /// The size of the axis.
    pub len: usize,
    /// The distance from one index to the next, in elements of each tensor; 0 if the tensor is repeated.
    pub strides: [usize; N],
}

/// The axes along which `N` tensors are read to be broadcast to one shape.
///
/// Axes that are read alike in all tensors are merged, and those of size 1 are left out. So there are few axes,
/// and only one for equal shapes. A kernel for a GPU passes [`axes`](Self::axes) to its shader; on the host,
/// [`zip`](super::loops::zip) and [`reduce`](super::loops::reduce) do the loops.
///
/// ```
/// use tf_op_plugin::toolkit::{Broadcast, Strides};
///
/// // Four rows, and one row that is added to each: the bias of a layer.
/// let broadcast = Broadcast::new([&[4, 3], &[3]])?;
/// assert_eq!(broadcast.shape(), [4, 3]);
/// let axes = [Strides { len: 4, strides: [3, 0] }, Strides { len: 3, strides: [1, 1] }];
/// assert_eq!(broadcast.axes(), axes);
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Broadcast<const N: usize> {
    shape: Shape,
    axes: Vec<Strides<N>>,
}

impl<const N: usize> Broadcast<N> {
    /// Creates the broadcast of dense tensors of these shapes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they do not broadcast, or the result has too many elements to count.
    pub fn new(shapes: [&[usize]; N]) -> Result<Self> {
        let mut shape = Shape::new();
        for one in shapes {
            shape = broadcast_shape(&shape, one)?;
        }
        match checked_count(&shape) {
            // There are no elements to read, and the product of the other sizes may overflow.
            Some(0) => {
                let axes = vec![Strides { len: 0, strides: [1; N] }];
                return Ok(Self { shape, axes });
            }
            Some(_) => {}
            None => {
                return Err(Error::invalid_argument(format!(
                    "{shape:?} has too many elements: {shapes:?} are broadcast to it"
                )));
            }
        }
        let mut axes: Vec<Strides<N>> = Vec::new();
        // Starts with the last axis, along which neighbours are adjacent in memory.
        let mut next = [1; N];
        for (axis, &len) in shape.iter().enumerate().rev() {
            let mut strides = [0; N];
            for side in 0..N {
                let own_axis = (axis + shapes[side].len()).checked_sub(shape.len());
                let size = own_axis.map_or(1, |own_axis| shapes[side][own_axis]);
                if size != 1 {
                    strides[side] = next[side];
                    next[side] *= size;
                }
            }
            match axes.last_mut() {
                _ if len == 1 => {}
                // The axis continues where the last one ended, in each tensor.
                Some(last) if (0..N).all(|side| strides[side] == last.strides[side] * last.len) => {
                    last.len *= len;
                }
                _ => axes.push(Strides { len, strides }),
            }
        }
        if axes.is_empty() {
            axes.push(Strides { len: 1, strides: [1; N] });
        }
        axes.reverse();
        Ok(Self { shape, axes })
    }

    /// Returns the shape of the result.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the merged axes, the outermost first; at least one. Along the last, each tensor is dense or
    /// repeated: its strides are 1 or 0. If there are no elements, the result is one axis of size 0.
    #[must_use]
    pub fn axes(&self) -> &[Strides<N>] {
        &self.axes
    }

    /// Returns the last of the merged axes: a row.
    pub(super) fn row(&self) -> &Strides<N> {
        &self.axes[self.axes.len() - 1]
    }

    /// Returns where each row starts in each tensor.
    pub(super) fn rows(&self) -> impl Iterator<Item = [usize; N]> {
        let outer = &self.axes[..self.axes.len() - 1];
        let count = outer.iter().map(|axis| axis.len).product();
        (0..count).map(|mut row| {
            let mut starts = [0; N];
            for axis in outer.iter().rev() {
                let at = row % axis.len;
                row /= axis.len;
                for (start, stride) in starts.iter_mut().zip(axis.strides) {
                    *start += at * stride;
                }
            }
            starts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_are_read_alike_are_one() {
        let lens = |shapes: [&[usize]; 2]| {
            let broadcast = Broadcast::new(shapes).unwrap();
            broadcast.axes().iter().map(|axis| axis.len).collect::<Vec<_>>()
        };
        assert_eq!(lens([&[4, 2, 3], &[2, 3]]), [4, 6]);
        assert_eq!(lens([&[4, 2, 3], &[4, 2, 3]]), [24]);
        assert_eq!(lens([&[2, 1, 3, 1], &[1, 2, 1, 3, 1]]), [6]);
        assert_eq!(lens([&[4, 1], &[1, 5]]), [4, 5]);
        assert_eq!(lens([&[], &[]]), [1]);
        assert_eq!(lens([&[2, 0], &[2, 1]]), [0]);
        assert_eq!(lens([&[0, 1 << 40, 1 << 40], &[1]]), [0], "a product that does not fit");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = Broadcast::new([&[2], &[1], &[3]]).unwrap_err().to_string();
        assert!(error.contains("Incompatible shapes: [2] vs. [3]"), "{error}");
        let error = Broadcast::new([&[1 << 40, 1], &[1 << 40]]).unwrap_err().to_string();
        assert!(error.contains("too many elements"), "{error}");
    }
}
