//! Windows of convolutions and of pooling.

use tf_fs_plugin::{Error, Result};

/// How windows go along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Size of the input.
    pub input: usize,
    /// Size of a window.
    pub size: usize,
    /// From one window to the next.
    pub stride: usize,
    /// From one element of a window to the next.
    pub dilation: usize,
    /// How far the first window begins before the input.
    pub before: usize,
    /// The number of windows.
    pub count: usize,
}

/// What is around the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: windows are within the input.
    Valid,
    /// As much as it takes for as many windows as there are strides.
    Same,
    /// This much before and behind.
    Explicit(usize, usize),
}

impl Windows {
    /// Returns the windows along an axis.
    ///
    /// ```
    /// use se_plugin::toolkit::window::{Padding, Windows};
    ///
    /// let windows = Windows::new(5, 3, 2, 1, Padding::Same)?;
    /// assert_eq!((windows.count, windows.before), (3, 1));
    /// # Ok::<(), se_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a size is 0 that cannot be, or the window is larger than the input.
    pub fn new(
        input: usize,
        size: usize,
        stride: usize,
        dilation: usize,
        padding: Padding,
    ) -> Result<Self> {
        if size == 0 || stride == 0 || dilation == 0 {
            return Err(Error::invalid_argument(
                "the sizes of windows, strides and dilations are positive",
            ));
        }
        let extent = (size - 1) * dilation + 1;
        let fit = |padded: usize| (padded + stride).checked_sub(extent).map(|room| room / stride);
        let (before, count) = match padding {
            Padding::Valid => (0, fit(input)),
            Padding::Explicit(before, behind) => (before, fit(input + before + behind)),
            Padding::Same => {
                let count = input.div_ceil(stride);
                let covered = (count.max(1) - 1) * stride + extent;
                (covered.saturating_sub(input) / 2, Some(count))
            }
        };
        let count = count.ok_or_else(|| {
            Error::invalid_argument(format!(
                "Computed output size would be negative: a window of {extent} is larger than the \
                 {input} of the input"
            ))
        })?;
        Ok(Self { input, size, stride, dilation, before, count })
    }

    /// Returns the place in the input of an element of a window, if it is there.
    #[must_use]
    pub fn place(&self, window: usize, element: usize) -> Option<usize> {
        let place = (window * self.stride + element * self.dilation).checked_sub(self.before)?;
        (place < self.input).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_tensorflow() {
        let windows = |input, size, stride, dilation, padding| {
            let found = Windows::new(input, size, stride, dilation, padding).ok()?;
            Some((found.count, found.before))
        };
        assert_eq!(windows(5, 3, 2, 1, Padding::Valid), Some((2, 0)));
        assert_eq!(windows(5, 3, 2, 1, Padding::Same), Some((3, 1)));
        assert_eq!(windows(6, 3, 2, 1, Padding::Same), Some((3, 0)), "more behind than before");
        assert_eq!(windows(2, 3, 1, 1, Padding::Valid), Some((0, 0)));
        assert_eq!(windows(1, 3, 1, 1, Padding::Valid), None);
        assert_eq!(windows(5, 3, 1, 2, Padding::Explicit(1, 0)), Some((2, 1)));
        assert_eq!(windows(5, 0, 1, 1, Padding::Same), None);
    }
}
