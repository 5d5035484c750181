//! The allocated parts of a range.

use std::collections::BTreeMap;

/// The alignment of allocations in bytes, in size and offset, as TensorFlow requires.
const ALIGNMENT: u64 = 256;

/// The allocations in a range that starts at 0. Each is put in the first gap that is large enough.
#[derive(Debug)]
pub(super) struct Allocator {
    pub(super) len: u64,
    /// Requested sizes by offset; the size in use is the next multiple of the alignment.
    used: BTreeMap<u64, u64>,
    /// Sizes by offset. No two gaps are adjacent.
    gaps: BTreeMap<u64, u64>,
    pub(super) in_use: u64,
    peak: u64,
    count: u64,
    largest: u64,
}

impl Allocator {
    /// Creates a range of `len` bytes, rounded down to a multiple of the alignment.
    pub(super) fn new(len: u64) -> Self {
        let len = len / ALIGNMENT * ALIGNMENT;
        let gaps = BTreeMap::from([(0, len)]);
        Self { len, used: BTreeMap::new(), gaps, in_use: 0, peak: 0, count: 0, largest: 0 }
    }

    /// Allocates `bytes`, not 0, and returns their offset, or `None` if no gap is large enough.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let whole = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let (&offset, &gap) = self.gaps.iter().find(|&(_, &gap)| gap >= whole)?;
        self.gaps.remove(&offset);
        if gap > whole {
            self.gaps.insert(offset + whole, gap - whole);
        }
        self.used.insert(offset, bytes);
        self.in_use += whole;
        self.peak = self.peak.max(self.in_use);
        self.largest = self.largest.max(bytes);
        self.count += 1;
        Some(offset)
    }

    /// Frees an allocation. Returns `None` if there is none at this offset.
    pub(super) fn free(&mut self, offset: u64) -> Option<()> {
        let whole = self.used.remove(&offset)?.next_multiple_of(ALIGNMENT);
        self.in_use -= whole;
        let (mut start, mut end) = (offset, offset + whole);
        if let Some((&before, &gap)) = self.gaps.range(..start).next_back()
            && before + gap == start
        {
            start = before;
        }
        if let Some(gap) = self.gaps.remove(&end) {
            end += gap;
        }
        self.gaps.insert(start, end - start);
        Some(())
    }

    /// Returns whether an allocation starts there.
    pub(super) fn is_allocated(&self, offset: u64) -> bool {
        self.used.contains_key(&offset)
    }

    /// Returns whether a range is within one allocation.
    pub(super) fn contains(&self, offset: u64, bytes: u64) -> bool {
        let allocation = self.used.range(..=offset).next_back();
        allocation.is_some_and(|(&start, &size)| {
            offset.checked_add(bytes).is_some_and(|end| end <= start + size)
        })
    }

    pub(super) fn stats(&self) -> crate::AllocatorStats {
        crate::AllocatorStats {
            allocations: self.count,
            in_use: self.in_use,
            peak_in_use: self.peak,
            largest_allocation: self.largest,
            limit: Some(self.len),
            reserved: self.len,
            peak_reserved: self.len,
            reservable_limit: Some(self.len),
            largest_free_block: self.gaps.values().copied().max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_suffices_is_taken() {
        let mut memory = Allocator::new(5 * 256 + 255);
        let all = [1, 256, 257, 100].map(|bytes| memory.allocate(bytes));
        assert_eq!(all, [Some(0), Some(256), Some(512), Some(1024)]);
        assert_eq!(memory.allocate(1), None, "what is behind the last multiple is lost");
        memory.free(256).unwrap();
        memory.free(1024).unwrap();
        assert_eq!(memory.allocate(257), None, "two gaps that do not touch");
        memory.free(512).unwrap();
        assert_eq!(memory.stats().largest_free_block, 1024);
        assert_eq!(memory.allocate(1024), Some(256), "the gaps have become one");
        assert_eq!(memory.allocate(u64::MAX), None);
    }

    #[test]
    fn gaps_become_one_in_any_order_of_frees() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut memory = Allocator::new(1024);
            let all = [(); 4].map(|()| memory.allocate(200).unwrap());
            for index in order {
                memory.free(all[index]).unwrap();
                assert_eq!(memory.free(all[index]), None, "freed already");
            }
            assert_eq!(memory.gaps, BTreeMap::from([(0, 1024)]), "{order:?}");
            assert_eq!(memory.in_use, 0);
        }
    }

    #[test]
    fn ranges_are_within_one_allocation() {
        let mut memory = Allocator::new(1024);
        let (a, b) = (memory.allocate(200).unwrap(), memory.allocate(256).unwrap());
        assert!(memory.contains(a, 200) && memory.contains(a + 199, 1));
        assert!(!memory.contains(a, 201), "behind what was requested");
        assert!(memory.contains(b + 100, 156) && !memory.contains(b + 100, 157));
        assert!(!memory.contains(a + 100, 256), "two allocations");
        assert!(!memory.contains(600, 1) && !memory.contains(a, u64::MAX));
        memory.free(a).unwrap();
        assert!(!memory.contains(a, 1));
    }

    #[test]
    fn statistics_count() {
        let mut memory = Allocator::new(1024);
        let a = memory.allocate(200).unwrap();
        memory.allocate(300).unwrap();
        memory.free(a).unwrap();
        let stats = memory.stats();
        assert_eq!((stats.allocations, stats.in_use, stats.peak_in_use), (2, 512, 768));
        assert_eq!((stats.largest_allocation, stats.limit), (300, Some(1024)));
    }
}
