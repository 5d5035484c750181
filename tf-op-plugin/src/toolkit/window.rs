//! Windows of convolutions and of pooling.

use tf_plugin_core::{Error, Result};

/// The windows along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// Size of the input.
    pub input: usize,
    /// Size of a window.
    pub size: usize,
    /// The distance from one window to the next.
    pub stride: usize,
    /// The distance from one element of a window to the next.
    pub dilation: usize,
    /// The distance by which the first window begins before the input.
    pub before: usize,
    /// The number of windows.
    pub count: usize,
}

/// The padding around the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// No padding: windows are within the input.
    Valid,
    /// As much as is needed for `input / stride` windows, rounded up.
    Same,
    /// This much before and behind the input.
    Explicit(usize, usize),
}

impl Windows {
    /// Creates the windows along an axis.
    ///
    /// ```
    /// use tf_op_plugin::toolkit::window::{Padding, Windows};
    ///
    /// let windows = Windows::new(5, 3, 2, 1, Padding::Same)?;
    /// assert_eq!((windows.count, windows.before), (3, 1));
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the size, the stride or the dilation is 0, if the window is so much larger than the input
    /// that TensorFlow computes a negative number of windows, or if a number does not fit into memory.
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
        let too_large = || {
            Error::invalid_argument(format!(
                "a window of {size} elements, {dilation} apart, at strides of {stride} with {padding:?} does not fit \
                 into memory; the input has {input} elements"
            ))
        };
        let extent = (size - 1).checked_mul(dilation).and_then(|last| last.checked_add(1));
        let extent = extent.ok_or_else(too_large)?;
        let fit = |around: Option<usize>| {
            let padded = around.and_then(|around| input.checked_add(around));
            let reach =
                padded.and_then(|padded| padded.checked_add(stride)).ok_or_else(too_large)?;
            match reach.checked_sub(extent) {
                Some(room) => Ok(room / stride),
                // TensorFlow's division rounds towards 0.
                None if extent - reach < stride => Ok(0),
                None => Err(Error::invalid_argument(format!(
                    "Computed output size would be negative: a window of {extent} is larger than the \
                     {input} of the input"
                ))),
            }
        };
        let (before, count) = match padding {
            Padding::Valid => (0, fit(Some(0))?),
            Padding::Explicit(before, behind) => (before, fit(before.checked_add(behind))?),
            Padding::Same => {
                let count = input.div_ceil(stride);
                // This does not overflow: the last window starts within the input.
                let covered = (count.max(1) - 1) * stride;
                let covered = covered.checked_add(extent).ok_or_else(too_large)?;
                (covered.saturating_sub(input) / 2, count)
            }
        };
        Ok(Self { input, size, stride, dilation, before, count })
    }

    /// Returns the place in the input of an element of a window, if it is within the input.
    #[must_use]
    pub fn place(&self, window: usize, element: usize) -> Option<usize> {
        let place = (window * self.stride + element * self.dilation).checked_sub(self.before)?;
        (place < self.input).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_core::Code;

    #[test]
    fn windows_are_those_of_tensorflow() {
        let windows = |input, size, stride, dilation, padding| {
            let axis = Windows::new(input, size, stride, dilation, padding).ok()?;
            Some((axis.count, axis.before))
        };
        assert_eq!(windows(5, 3, 2, 1, Padding::Valid), Some((2, 0)));
        assert_eq!(windows(5, 3, 2, 1, Padding::Same), Some((3, 1)));
        assert_eq!(windows(6, 3, 2, 1, Padding::Same), Some((3, 0)), "more behind than before");
        assert_eq!(windows(2, 3, 1, 1, Padding::Valid), Some((0, 0)));
        assert_eq!(windows(1, 3, 1, 1, Padding::Valid), None);
        assert_eq!(windows(1, 5, 3, 1, Padding::Valid), Some((0, 0)), "-1 / 3 is 0");
        assert_eq!(windows(1, 7, 3, 1, Padding::Valid), None, "-3 / 3 is not");
        assert_eq!(windows(5, 3, 1, 2, Padding::Explicit(1, 0)), Some((2, 1)));
        assert_eq!(windows(5, 0, 1, 1, Padding::Same), None);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        const MAX: usize = usize::MAX;
        for (input, size, stride, dilation, padding) in [
            (5, 3, 1, MAX, Padding::Valid),
            (5, MAX, 1, 2, Padding::Same),
            (5, 3, MAX, 1, Padding::Valid),
            (5, 3, 1, 1, Padding::Explicit(MAX, 0)),
            (5, 3, 1, 1, Padding::Explicit(MAX, MAX)),
            (MAX, 3, 1, 1, Padding::Same),
        ] {
            let error = Windows::new(input, size, stride, dilation, padding).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("does not fit"), "{error}");
        }
        assert!(Windows::new(5, 3, MAX, 1, Padding::Same).is_ok());
    }
}
