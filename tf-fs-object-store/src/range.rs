//! Bytes of an object.

/// The bytes from `start` up to `end`, which is not one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The position of the first byte.
    pub start: u64,
    /// The position after the last byte.
    pub end: u64,
}

impl Range {
    /// Creates the range from `start` up to `end`.
    pub fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// Returns the number of bytes.
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}
