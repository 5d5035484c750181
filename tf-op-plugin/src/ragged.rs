//! Ragged tensors: rows of different lengths.

use crate::kernel::Element;
use crate::strings::{Strings, StringsBuf};
use crate::tensor::{Tensor, TensorBuf};
use core::ops::Range;
use tf_plugin_core::{Error, Result, ensure};

/// A ragged tensor of rows: all values in a row, and the row splits, which say where each row starts and ends. For
/// TensorFlow it is two tensors, `NAME_values` and `NAME_row_splits`; the Python wrapper of an op joins them
/// to a `tf.RaggedTensor`.
///
/// `V` is [`Tensor`] or [`Strings`]. [`RaggedBuf`] creates one.
#[derive(Debug)]
pub struct Ragged<V> {
    pub(crate) values: V,
    pub(crate) row_splits: Tensor<i64>,
}

impl<V> Ragged<V> {
    /// Creates a ragged tensor from values and row splits: 0, then the end of each row.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the row splits are not those of so many values.
    pub fn new(values: V, row_splits: Tensor<i64>) -> Result<Self>
    where
        V: Values,
    {
        let count = values.count();
        let splits = row_splits.as_slice();
        ensure!(
            row_splits.shape().len() == 1
                && splits.first() == Some(&0)
                && splits.last().copied() == i64::try_from(count).ok()
                && splits.is_sorted(),
            Error::invalid_argument(format!(
                "the row splits, of shape {:?}, are not those of {count} values: they start with 0, never decrease, and \
                 end with {count}",
                row_splits.shape()
            ))
        );
        Ok(Self { values, row_splits })
    }

    /// Returns the values of all rows.
    #[must_use]
    pub const fn values(&self) -> &V {
        &self.values
    }

    /// Returns the row splits.
    #[must_use]
    pub fn row_splits(&self) -> &[i64] {
        &self.row_splits
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.row_splits.len().saturating_sub(1)
    }

    /// Returns the indices of the values of each row.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        // `new` has seen that they are neither negative nor decreasing.
        self.row_splits.windows(2).map(|row| row[0] as usize..row[1] as usize)
    }
}

/// The values of a ragged tensor.
pub trait Values {
    #[doc(hidden)]
    fn count(&self) -> usize;
}

impl<T: Element> Values for Tensor<T> {
    /// The length of the first dimension: inner dimensions are uniform.
    fn count(&self) -> usize {
        self.shape().first().map_or(0, |&len| usize::try_from(len).unwrap_or(0))
    }
}

impl Values for Strings {
    fn count(&self) -> usize {
        self.shape().first().map_or(0, |&len| usize::try_from(len).unwrap_or(0))
    }
}

/// A ragged tensor that grows by rows. `B` is [`TensorBuf`] or [`StringsBuf`].
///
/// ```
/// use tf_op_plugin::{RaggedBuf, StringsBuf};
///
/// let mut words = RaggedBuf::<StringsBuf>::new();
/// for text in ["to be", "", "or"] {
///     words.values.extend(text.split_whitespace());
///     words.end_row();
/// }
/// let words = words.finish();
/// assert_eq!(words.row_splits(), [0, 2, 2, 3]);
/// ```
#[derive(Debug)]
pub struct RaggedBuf<B> {
    /// The values so far, to which those of the present row are added.
    pub values: B,
    row_splits: TensorBuf<i64>,
}

impl<B: ValuesBuf> RaggedBuf<B> {
    /// Creates a buffer without rows.
    #[must_use]
    pub fn new() -> Self {
        let mut row_splits = TensorBuf::new();
        row_splits.push(0);
        Self { values: B::default(), row_splits }
    }

    /// Creates a buffer without rows, with memory for so many rows and values in all of them.
    ///
    /// # Panics
    /// If there is no memory; the op then fails with `RESOURCE_EXHAUSTED`.
    #[must_use]
    pub fn with_capacity(rows: usize, values: usize) -> Self {
        let mut row_splits = TensorBuf::with_capacity(rows.saturating_add(1));
        row_splits.push(0);
        Self { values: B::for_values(values), row_splits }
    }

    /// Ends the present row.
    pub fn end_row(&mut self) {
        self.row_splits.push(self.values.count() as i64);
    }

    /// Adds the rows of another buffer, such as those of another part of a batch.
    pub fn append(&mut self, other: Self) {
        let start = self.values.count() as i64;
        self.values.add(other.values);
        self.row_splits.extend_map(&other.row_splits[1..], |split| start + split);
    }

    /// Returns the ragged tensor. Values after the last [`end_row`](Self::end_row) are a row, too.
    #[must_use]
    pub fn finish(mut self) -> Ragged<B::Values> {
        if self.row_splits.last().copied() != i64::try_from(self.values.count()).ok() {
            self.end_row();
        }
        Ragged { values: self.values.into_values(), row_splits: self.row_splits.into() }
    }
}

impl<B: ValuesBuf> Default for RaggedBuf<B> {
    fn default() -> Self {
        Self::new()
    }
}

/// The growing values of a [`RaggedBuf`].
pub trait ValuesBuf: Default {
    /// The values in the end.
    type Values;
    #[doc(hidden)]
    fn count(&self) -> usize;
    #[doc(hidden)]
    fn for_values(count: usize) -> Self;
    #[doc(hidden)]
    fn add(&mut self, other: Self);
    #[doc(hidden)]
    fn into_values(self) -> Self::Values;
}

impl<T: Element> ValuesBuf for TensorBuf<T> {
    type Values = Tensor<T>;

    fn count(&self) -> usize {
        self.len()
    }

    fn for_values(count: usize) -> Self {
        Self::with_capacity(count)
    }

    fn add(&mut self, other: Self) {
        self.extend_from_slice(&other);
    }

    fn into_values(self) -> Tensor<T> {
        self.into()
    }
}

impl ValuesBuf for StringsBuf {
    type Values = Strings;

    fn count(&self) -> usize {
        self.len()
    }

    fn for_values(count: usize) -> Self {
        Self::with_capacity(count)
    }

    fn add(&mut self, other: Self) {
        self.append(other);
    }

    fn into_values(self) -> Strings {
        self.into()
    }
}
