//! The tasks that use each range of a memory at present.

use super::double_mapping::Mapping;
use crate::sync::lock;
use core::ops::Range;
use core::slice;
use std::sync::{Arc, Mutex};
use tf_plugin_core::{Error, Result};

/// Memory from which tasks borrow ranges: many may read a range, or one may write it.
///
/// The rules are those of Rust's references, checked at run time. So two tasks that use one range at the
/// same time get an error, where they would be a data race otherwise.
#[derive(Debug)]
pub(crate) struct BorrowTable {
    pub(crate) mapping: Mapping,
    users: Mutex<RangeUsers>,
}

#[derive(Debug, Default)]
struct RangeUsers {
    /// The number of the last borrow.
    last: u64,
    uses: Vec<RangeUse>,
}

/// One range of one borrow.
#[derive(Debug)]
struct RangeUse {
    borrow: u64,
    op: &'static str,
    range: Range<usize>,
    writes: bool,
}

impl BorrowTable {
    /// Creates a memory of `len` bytes, not 0; see [`Mapping::new`].
    pub(crate) fn new(len: usize, guarded: bool) -> Result<Self> {
        Ok(Self { mapping: Mapping::new(len, guarded)?, users: Mutex::default() })
    }

    /// Borrows ranges, all of them or none. Empty ranges are not borrowed.
    ///
    /// # Errors
    /// `INTERNAL` if another task writes a range, or uses one that is to be written; also if the other use is
    /// in the same borrow. `FAILED_PRECONDITION` in a forked process.
    ///
    /// # Panics
    /// If a range is not within the memory.
    pub(crate) fn borrow(
        self: &Arc<Self>,
        op: &'static str,
        reads: Vec<Range<usize>>,
        writes: Vec<Range<usize>>,
    ) -> Result<Borrow> {
        self.mapping.check_process()?;
        for range in reads.iter().chain(&writes) {
            // `slices` relies on this check and on the one of `at`.
            assert!(range.start <= range.end, "ranges do not end before they start");
            self.mapping.at(range.start, range.len());
        }
        let mut users = lock(&self.users);
        let borrow = users.last + 1;
        let before = users.uses.len();
        let ranges = reads.iter().map(|range| (range, false));
        let ranges = ranges.chain(writes.iter().map(|range| (range, true)));
        for (range, writes) in ranges.filter(|(range, _)| !range.is_empty()) {
            let conflict = users.uses.iter().find(|other| {
                (writes || other.writes)
                    && other.range.start < range.end
                    && range.start < other.range.end
            });
            if let Some(other) = conflict {
                let start = self.mapping.view() + range.start.max(other.range.start) as u64;
                let error = race(op, other, borrow, start);
                users.uses.truncate(before);
                return Err(error);
            }
            users.uses.push(RangeUse { borrow, op, range: range.clone(), writes });
        }
        users.last = borrow;
        drop(users);
        Ok(Borrow { borrows: Arc::clone(self), number: borrow, reads, writes })
    }
}

#[cold]
fn race(op: &'static str, other: &RangeUse, borrow: u64, start: u64) -> Error {
    if other.borrow == borrow {
        return Error::internal(format!(
            "`{op}` names the memory at {start:#x} twice and writes to it; work in place names it once, \
             among what it writes"
        ));
    }
    let other = other.op;
    Error::internal(format!(
        "`{op}` and `{other}` use the memory at {start:#x} at the same time and one of them writes to it: \
         let the stream of one wait for the other"
    ))
}

/// Ranges that are borrowed until this is dropped.
#[derive(Debug)]
pub(crate) struct Borrow {
    borrows: Arc<BorrowTable>,
    number: u64,
    reads: Vec<Range<usize>>,
    writes: Vec<Range<usize>>,
}

impl Borrow {
    /// Returns the ranges, in the order of the request. Empty ones are aligned as the memory is.
    pub(crate) fn slices(&mut self) -> (Vec<&[u8]>, Vec<&mut [u8]>) {
        let at = |range: &Range<usize>| match range.is_empty() {
            true => self.borrows.mapping.at(0, 0),
            false => self.borrows.mapping.at(range.start, range.len()),
        };
        let reads = self.reads.iter().map(|range| {
            // SAFETY: within the mapping, which lives as long as `self`, and which nothing else has (the
            // view is not for access, and a fork goes without). While the borrow is in the borrows nobody
            // writes to the range, for `borrow` compares every two ranges of living borrows and within
            // this one; and `&mut self` keeps these slices the only ones of this borrow.
            unsafe { slice::from_raw_parts(at(range).as_ptr(), range.len()) }
        });
        let writes = self.writes.iter().map(|range| {
            // SAFETY: within the mapping, as for the read ranges. This borrow writes the range, so `borrow` has
            // refused every other borrow that overlaps it.
            unsafe { slice::from_raw_parts_mut(at(range).as_ptr(), range.len()) }
        });
        (reads.collect(), writes.collect())
    }
}

impl Drop for Borrow {
    fn drop(&mut self) {
        lock(&self.borrows.users).uses.retain(|one| one.borrow != self.number);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant")]
mod tests {
    use super::*;

    fn borrows() -> Arc<BorrowTable> {
        Arc::new(BorrowTable::new(4096, true).unwrap())
    }

    #[test]
    fn what_is_written_is_read() {
        let borrows = borrows();
        let mut borrow = borrows.borrow("write", vec![], vec![8..12, 12..16]).unwrap();
        let (_, mut writes) = borrow.slices();
        writes[0].fill(1);
        writes[1].fill(2);
        drop(borrow);
        let mut borrow = borrows.borrow("read", vec![10..14, 8..12], vec![]).unwrap();
        assert_eq!(borrow.slices().0, [[1, 1, 2, 2], [1, 1, 1, 1]]);
    }

    #[test]
    fn two_uses_of_a_range_conflict_if_one_writes() {
        let borrows = borrows();
        let reader = borrows.borrow("reader", vec![100..200], vec![]).unwrap();
        drop(borrows.borrow("another reader", vec![150..160], vec![]).unwrap());
        drop(borrows.borrow("next to it", vec![], vec![0..100, 200..300]).unwrap());
        for range in [99..101, 199..200, 0..4096, 120..121] {
            let error = borrows.borrow("writer", vec![0..8], vec![range]).unwrap_err();
            assert!(error.message().contains("`writer` and `reader`"), "{error}");
        }
        drop(reader);
        let writer = borrows.borrow("writer", vec![], vec![100..200]).unwrap();
        assert!(borrows.borrow("reader", vec![199..201], vec![]).is_err());
        assert!(borrows.borrow("writer", vec![], vec![199..201]).is_err());
        drop(writer);
        assert!(lock(&borrows.users).uses.is_empty(), "refused borrows leave nothing behind");
    }

    #[test]
    fn a_borrow_may_not_conflict_with_itself() {
        let borrows = borrows();
        for (reads, writes) in [(vec![0..8], vec![4..12]), (vec![], vec![0..8, 0..8])] {
            let error = borrows.borrow("twice", reads, writes).unwrap_err();
            assert!(error.message().contains("among what it writes"), "{error}");
        }
        assert!(lock(&borrows.users).uses.is_empty());
    }

    #[test]
    fn empty_ranges_conflict_with_nothing_and_are_aligned() {
        let borrows = borrows();
        let _writer = borrows.borrow("writer", vec![], vec![0..4096]).unwrap();
        let mut empty = borrows.borrow("empty", vec![7..7], vec![9..9]).unwrap();
        let (reads, writes) = empty.slices();
        assert!(reads[0].is_empty() && writes[0].is_empty());
        assert!(reads[0].as_ptr().addr().is_multiple_of(256));
        assert!(writes[0].as_ptr().addr().is_multiple_of(256));
    }

    #[test]
    #[should_panic(expected = "within the mapping")]
    fn ranges_are_within_the_memory() {
        let _ = borrows().borrow("beyond", vec![4000..4097], vec![]);
    }
}
