//! A small set of pieces of which each is given to one user at a time.

use crate::sync::{AtomicU16, Ordering};

/// The most pieces.
pub(crate) const MOST: u32 = u16::BITS;

/// Which pieces are taken.
#[derive(Debug)]
pub(crate) struct Pieces {
    count: u32,
    /// A bit for each piece.
    taken: AtomicU16,
}

impl Pieces {
    /// So many pieces, at most [`MOST`].
    pub(crate) fn new(count: u32) -> Self {
        Self { count: count.min(MOST), taken: AtomicU16::new(0) }
    }

    /// Takes the first that is free.
    pub(crate) fn take(&self) -> Option<u32> {
        let free = |taken: u16| Some(taken.trailing_ones()).filter(|&at| at < self.count);
        let before = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            free(taken).map(|at| taken | 1 << at)
        });
        free(before.ok()?)
    }

    /// Gives one back. Whether there is such a piece.
    pub(crate) fn give_back(&self, at: u32) -> bool {
        if at < self.count {
            self.taken.fetch_and(!(1 << at), Ordering::AcqRel);
        }
        at < self.count
    }
}
