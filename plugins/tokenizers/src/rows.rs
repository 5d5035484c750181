//! Rows of different length: flat values, and where each row ends.

/// The ids of several texts, and what belongs to each id.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rows {
    /// The ids of all rows.
    pub ids: Vec<u32>,
    /// The number of the text in its pair for each id, if that was requested.
    pub type_ids: Vec<u32>,
    /// Where the token of each id begins in its text, if that was requested.
    pub starts: Vec<usize>,
    /// Where the token of each id ends in its text, if that was requested.
    pub limits: Vec<usize>,
    /// The number of ids of each row.
    pub lengths: Vec<usize>,
}

impl Rows {
    /// Creates an empty list with room for this many rows.
    #[must_use]
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            lengths: Vec::with_capacity(rows),
            ids: Vec::with_capacity(rows * 16),
            ..Self::default()
        }
    }

    /// Returns the ids of each row.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.ids.as_slice();
        self.lengths.iter().map(move |&length| {
            let (row, behind) = rest.split_at(length);
            rest = behind;
            row
        })
    }

    /// Returns the length of the longest row.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }
}

/// Returns the row splits of consecutive parts: 0, and the number of ids up to the end of each row.
pub fn row_splits<'a>(parts: impl IntoIterator<Item = &'a Rows>) -> Vec<i64> {
    let mut splits = vec![0];
    let mut end = 0;
    for part in parts {
        splits.extend(part.lengths.iter().map(|&length| {
            end += length as i64;
            end
        }));
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined() {
        let first = Rows { ids: vec![1, 2, 3], lengths: vec![1, 0, 2], ..Rows::default() };
        let second = Rows { ids: vec![4], lengths: vec![1], ..Rows::default() };
        assert_eq!(row_splits([&first, &second]), [0, 1, 1, 3, 4]);
        assert_eq!(first.iter().collect::<Vec<_>>(), [&[1][..], &[], &[2, 3]]);
        assert_eq!((first.longest(), Rows::default().longest()), (2, 0));
        assert_eq!(row_splits([]), [0]);
    }
}
