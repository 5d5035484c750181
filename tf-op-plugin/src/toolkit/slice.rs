//! Slices as Python writes them: `a[1:, ::-2, ..., None, 3]`.

use super::shape::Shape;
use crate::kernel::OpKernelConstruction;
use tf_plugin_core::{Error, Result, ensure};

/// The indices of an axis that a slice takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The first index.
    pub start: usize,
    /// The number of indices.
    pub count: usize,
    /// The distance from one index to the next; not 0.
    pub step: isize,
}

impl Steps {
    /// Returns `count` indices from `start`.
    #[must_use]
    pub fn range(start: usize, count: usize) -> Self {
        Self { start, count, step: 1 }
    }

    /// Returns the indices of each axis that the op `Slice` takes: `size` of them from `begin`, all if `size` is -1.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for indices outside of the shape, or another number of them than it has axes.
    pub fn of_slice(shape: &[usize], begin: &[i64], size: &[i64]) -> Result<Vec<Self>> {
        let wrong = |text: String| Error::invalid_argument(text);
        ensure!(
            begin.len() == shape.len() && size.len() == shape.len(),
            wrong(format!("begin {begin:?} and size {size:?} do not fit the shape {shape:?}"))
        );
        let steps = shape.iter().zip(begin.iter().zip(size)).map(|(&all, (&begin, &size))| {
            let start = usize::try_from(begin).ok().filter(|&start| start <= all);
            let steps = start.and_then(|start| {
                let count = match size {
                    -1 => all - start,
                    size => usize::try_from(size).ok().filter(|&size| size <= all - start)?,
                };
                Some(Self::range(start, count))
            });
            steps.ok_or_else(|| {
                wrong(format!("Expected begin[i] in [0, {all}] and size[i] within it, but got {begin} and {size}"))
            })
        });
        steps.collect()
    }
}

/// A slice as TensorFlow passes it to `StridedSlice`: an entry for each index, and bits for its kind.
///
/// ```
/// use tf_op_plugin::toolkit::slice::{Masks, Steps, StridedSlice};
///
/// // a[1:, ::-2] of a 3 × 5 matrix
/// let masks = Masks { begin: 0b10, end: 0b11, ..Masks::default() };
/// let slice = StridedSlice { begin: vec![1, 0], end: vec![0, 0], strides: vec![1, -2], masks };
/// let plan = slice.plan(&[3, 5])?;
/// assert_eq!(plan.shape, [2, 3]);
/// assert_eq!(plan.steps[1], Steps { start: 4, count: 3, step: -2 });
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StridedSlice {
    /// Where each index begins.
    pub begin: Vec<i64>,
    /// Where each index ends, exclusive.
    pub end: Vec<i64>,
    /// The distance from one element to the next.
    pub strides: Vec<i64>,
    /// The kinds of the entries.
    pub masks: Masks,
}

/// The kinds of the entries, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// `begin` is ignored, as in `:3`.
    pub begin: i64,
    /// `end` is ignored, as in `3:`.
    pub end: i64,
    /// `...`: all axes for which there are no entries.
    pub ellipsis: i64,
    /// `None`: an axis of size 1 that the tensor does not have.
    pub new_axis: i64,
    /// A number: the result does not have the axis.
    pub shrink: i64,
}

impl Masks {
    /// Reads the masks of an op's attributes, such as those of `StridedSlice`.
    ///
    /// # Errors
    /// As [`OpKernelConstruction::attr`].
    pub fn read(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self {
            begin: construction.attr("begin_mask")?,
            end: construction.attr("end_mask")?,
            ellipsis: construction.attr("ellipsis_mask")?,
            new_axis: construction.attr("new_axis_mask")?,
            shrink: construction.attr("shrink_axis_mask")?,
        })
    }
}

/// The elements that a slice takes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The indices along each axis of the tensor.
    pub steps: Vec<Steps>,
    /// The shape of the result.
    pub shape: Shape,
}

impl Plan {
    /// Returns the shape of the result before axes are added and removed.
    #[must_use]
    pub fn sizes(&self) -> Shape {
        self.steps.iter().map(|steps| steps.count).collect()
    }
}

impl StridedSlice {
    /// Returns the plan of the slice of a tensor of this shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the slice does not fit the shape.
    pub fn plan(&self, shape: &[usize]) -> Result<Plan> {
        let count = self.begin.len();
        ensure!(
            self.end.len() == count && self.strides.len() == count && count < 64,
            Error::invalid_argument("begin, end and strides of a slice must be of equal length")
        );
        let bit = |mask: i64, index: usize| mask >> index & 1 == 1;
        let is_plain =
            |&index: &usize| !bit(self.masks.ellipsis, index) && !bit(self.masks.new_axis, index);
        let plain = (0..count).filter(is_plain).count();
        ensure!(
            plain <= shape.len() && self.masks.ellipsis.count_ones() <= 1,
            Error::invalid_argument(format!(
                "there are {plain} indices for a tensor of rank {}, or several `...`",
                shape.len()
            ))
        );
        let whole = |size: usize| Steps::range(0, size);
        let mut plan = Plan { steps: Vec::new(), shape: Vec::new() };
        for index in 0..count {
            if bit(self.masks.ellipsis, index) {
                for &size in &shape[plan.steps.len()..][..shape.len() - plain] {
                    plan.steps.push(whole(size));
                    plan.shape.push(size);
                }
            } else if bit(self.masks.new_axis, index) {
                plan.shape.push(1);
            } else {
                let size = shape[plan.steps.len()];
                let steps = self.index(index, size, plan.steps.len())?;
                plan.steps.push(steps);
                if !bit(self.masks.shrink, index) {
                    plan.shape.push(steps.count);
                }
            }
        }
        for &size in &shape[plan.steps.len()..] {
            plan.steps.push(whole(size));
            plan.shape.push(size);
        }
        Ok(plan)
    }

    /// Returns the indices that an entry takes of an axis of this size.
    fn index(&self, index: usize, size: usize, axis: usize) -> Result<Steps> {
        let bit = |mask: i64| mask >> index & 1 == 1;
        let (size, step) = (size as i64, self.strides[index]);
        ensure!(step != 0, Error::invalid_argument(format!("strides[{index}] must be non-zero")));
        let from_start = |place: i64| if place < 0 { place.saturating_add(size) } else { place };
        let begin = from_start(self.begin[index]);
        if bit(self.masks.shrink) {
            ensure!(
                step > 0,
                Error::invalid_argument("only stride 1 allowed on non-range indexing.")
            );
            ensure!(
                (0..size).contains(&begin),
                Error::invalid_argument(format!(
                    "slice index {} of dimension {axis} out of bounds.",
                    self.begin[index]
                ))
            );
            return Ok(Steps::range(begin as usize, 1));
        }
        // With a negative step, the exclusive end may be -1.
        let (first, last) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let begin = match bit(self.masks.begin) {
            true if step > 0 => first,
            true => last,
            false => begin.clamp(first, last),
        };
        let end = match bit(self.masks.end) {
            true if step > 0 => last,
            true => first,
            false => from_start(self.end[index]).clamp(first, last),
        };
        let length = if step > 0 { end - begin } else { begin - end };
        let count = length.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        let step = isize::try_from(step).map_err(Error::invalid_argument)?;
        Ok(match count {
            0 => Steps { start: 0, count: 0, step: 1 },
            count => Steps { start: begin as usize, count: count as usize, step },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(begin: &[i64], end: &[i64], strides: &[i64], masks: Masks) -> StridedSlice {
        let [begin, end, strides] = [begin, end, strides].map(<[i64]>::to_vec);
        StridedSlice { begin, end, strides, masks }
    }

    #[test]
    fn indices_of_the_op_slice_stay_inside_the_shape() {
        let steps = Steps::of_slice(&[4, 3], &[1, 3], &[-1, 0]).unwrap();
        assert_eq!(steps, [Steps::range(1, 3), Steps::range(3, 0)]);
        for (begin, size) in
            [([5, 0], [0, 0]), ([-1, 0], [1, 1]), ([1, 0], [4, 1]), ([0, 0], [-2, 1])]
        {
            assert!(Steps::of_slice(&[4, 3], &begin, &size).is_err(), "{begin:?} {size:?}");
        }
        assert!(Steps::of_slice(&[4, 3], &[0], &[1]).is_err());
    }

    /// Compares each slice with Python's of a list.
    #[test]
    fn one_index_is_as_in_python() {
        let all = Masks { begin: 1, end: 1, ..Masks::default() };
        let none = Masks::default();
        for (begin, end, stride, masks, expected) in [
            (1, 4, 1, none, &[1, 2, 3][..]),
            (-3, -1, 1, none, &[2, 3]),
            (0, 100, 2, none, &[0, 2, 4]),
            (4, 0, -2, none, &[4, 2]),
            (100, -100, -1, none, &[4, 3, 2, 1, 0]),
            (0, 0, -1, all, &[4, 3, 2, 1, 0]),
            (0, 0, 3, all, &[0, 3]),
            (3, 1, 1, none, &[]),
            (1, 3, -1, none, &[]),
            (2, 3, 7, none, &[2]),
        ] {
            let plan = slice(&[begin], &[end], &[stride], masks).plan(&[5]).unwrap();
            let Steps { start, count, step } = plan.steps[0];
            let indices: Vec<_> =
                (0..count).map(|at| start as isize + at as isize * step).collect();
            assert_eq!(indices, expected, "[{begin}:{end}:{stride}]");
            assert_eq!(plan.shape, [expected.len()]);
        }
        assert_eq!(slice(&[0], &[0], &[1], all).plan(&[0]).unwrap().shape, [0]);
        assert_eq!(slice(&[0], &[0], &[-1], all).plan(&[0]).unwrap().shape, [0]);
    }

    #[test]
    fn axes_come_and_go() {
        // a[1, ..., None, ::2]
        let masks = Masks { begin: 8, end: 8, ellipsis: 2, new_axis: 4, shrink: 1 };
        let plan = slice(&[1, 0, 0, 0], &[2, 0, 0, 0], &[1, 1, 1, 2], masks);
        let plan = plan.plan(&[3, 4, 5, 6]).unwrap();
        assert_eq!(plan.shape, [4, 5, 1, 3]);
        assert_eq!(plan.sizes(), [1, 4, 5, 3]);
        assert_eq!(plan.steps[0].start, 1);
        assert_eq!(plan.steps[3], Steps { start: 0, count: 3, step: 2 });
        // a[0] of a tensor with more axes
        let masks = Masks { shrink: 1, ..Masks::default() };
        assert_eq!(slice(&[0], &[1], &[1], masks).plan(&[2, 7]).unwrap().shape, [7]);
        assert_eq!(slice(&[-1], &[0], &[1], masks).plan(&[2, 7]).unwrap().steps[0].start, 1);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shrink = Masks { shrink: 1, ..Masks::default() };
        assert!(slice(&[2], &[3], &[1], shrink).plan(&[2]).is_err());
        assert!(slice(&[-3], &[3], &[1], shrink).plan(&[2]).is_err());
        assert!(slice(&[0], &[3], &[0], Masks::default()).plan(&[2]).is_err());
        assert!(slice(&[0, 0], &[1, 1], &[1, 1], Masks::default()).plan(&[2]).is_err());
        let two = Masks { ellipsis: 3, ..Masks::default() };
        assert!(slice(&[0, 0], &[1, 1], &[1, 1], two).plan(&[2]).is_err());
    }
}
