//! Rows of different length to a rectangle.

use crate::Tokenizer;
use crate::rows::Rows;
use crate::truncation::Side;
use tf_plugin_core::{Error, Result};
use tokenizers::{PaddingDirection, PaddingStrategy};

/// How short rows are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The length of all rows; if there is none, that of the longest.
    pub length: Option<usize>,
    /// The length is rounded up to a multiple of this, if it is not 0.
    pub multiple_of: usize,
    /// At which end ids are added.
    pub side: Side,
    /// The id that is added.
    pub id: u32,
    /// The type id that is added.
    pub type_id: u32,
}

impl Padding {
    /// Returns the padding that the JSON asks for, or else to the longest row with the id of `[PAD]` or `<pad>`, or 0.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer) -> Self {
        if let Some(params) = &tokenizer.padding {
            return Self {
                length: match params.strategy {
                    PaddingStrategy::BatchLongest => None,
                    PaddingStrategy::Fixed(length) => Some(length),
                },
                multiple_of: params.pad_to_multiple_of.unwrap_or(0),
                side: match params.direction {
                    PaddingDirection::Left => Side::Left,
                    PaddingDirection::Right => Side::Right,
                },
                id: params.pad_id,
                type_id: params.pad_type_id,
            };
        }
        let id = ["[PAD]", "<pad>"].iter().find_map(|token| tokenizer.inner.token_to_id(token));
        Self { length: None, multiple_of: 0, side: Side::Right, id: id.unwrap_or(0), type_id: 0 }
    }

    /// Returns the length of all rows.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a row is longer than the length that was requested.
    pub fn width<'a>(&self, parts: impl IntoIterator<Item = &'a Rows>) -> Result<usize> {
        let longest = parts.into_iter().map(Rows::longest).max().unwrap_or(0);
        let width = self.length.unwrap_or(longest);
        let width = match self.multiple_of {
            0 => width,
            multiple => width.checked_next_multiple_of(multiple).unwrap_or(width),
        };
        if longest > width {
            return Err(Error::invalid_argument(format!(
                "a row has {longest} ids, and rows are padded to {width}; set padding to \"longest\", or truncate rows to a \
                 max_length of at most {width}"
            )));
        }
        Ok(width)
    }

    /// Returns where the ids of a row with this length are in a row of the rectangle.
    #[must_use]
    pub fn place(&self, length: usize, width: usize) -> std::ops::Range<usize> {
        match self.side {
            Side::Right => 0..length,
            Side::Left => width - length..width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PADDING: Padding =
        Padding { length: None, multiple_of: 0, side: Side::Right, id: 0, type_id: 0 };

    fn rows(lengths: &[usize]) -> Rows {
        Rows { lengths: lengths.to_vec(), ..Rows::default() }
    }

    #[test]
    fn the_width_is_that_of_the_longest_row_or_the_requested_one() {
        let parts = [rows(&[1, 3]), rows(&[5])];
        assert_eq!(PADDING.width(&parts).unwrap(), 5);
        assert_eq!(Padding { multiple_of: 4, ..PADDING }.width(&parts).unwrap(), 8);
        assert_eq!(Padding { length: Some(7), ..PADDING }.width(&parts).unwrap(), 7);
        assert_eq!(
            Padding { length: Some(7), multiple_of: 8, ..PADDING }.width(&parts).unwrap(),
            8
        );
        assert_eq!(PADDING.width(&[]).unwrap(), 0);
        let error = Padding { length: Some(4), ..PADDING }.width(&parts).unwrap_err();
        assert!(error.to_string().starts_with("a row has 5 ids, and rows are padded to 4; "));
    }

    #[test]
    fn ids_are_at_the_other_end() {
        assert_eq!(PADDING.place(2, 5), 0..2);
        assert_eq!(Padding { side: Side::Left, ..PADDING }.place(2, 5), 3..5);
    }
}
