//! How large the parts of an upload are.

use crate::{CopyLimits, PartLimits, Range};

/// Parts have the same size for this share of all parts; then they double each time.
const STEPS: u32 = 10;
/// This share of all parts are copies at most, unless the store cannot copy more at once: new bytes need parts too.
const COPIES: u32 = 8;
/// The smallest start of the doubling, so that 10,000 parts suffice for 5 TiB.
const GROWN: u64 = 8 << 20;

/// The bytes of part `number`, counted from 1, if the first parts have `first` bytes; with `equal` all
/// have as many.
///
/// With the limits of S3 an object of 8 GiB is made of parts of 8 MiB, one of 120 GiB ends with parts of 64 MiB, one of
/// 5 TiB with parts of 4 GiB. Memory is needed for whole parts, so they grow as late as they can.
pub(super) fn size(limits: &PartLimits, first: u64, number: u32, equal: bool) -> u64 {
    let first = first.max(limits.smallest.max(1)).min(limits.largest);
    let doublings = number.saturating_sub(1) / (limits.most / STEPS).max(1);
    if equal || doublings == 0 {
        return first;
    }
    // 2^40 parts of a byte are more than any store takes.
    first.max(GROWN).saturating_mul(1 << doublings.min(40)).min(limits.largest)
}

/// Splits an object of `len` bytes into `count` ranges of nearly equal size, in which it is copied.
pub(super) fn copies(count: u32, len: u64) -> impl Iterator<Item = Range> {
    let count = u64::from(count.max(1));
    let each = len.div_ceil(count);
    (0..count).map(move |index| Range::new(index * each, ((index + 1) * each).min(len)))
}

/// Returns in how many parts an object of `len` bytes is copied: each of [`CopyLimits::usual`] bytes at most, or fewer and
/// larger ones.
pub(super) fn copy_count(limits: &PartLimits, copies: CopyLimits, len: u64) -> u32 {
    let usual = len.div_ceil(copies.usual.max(1)).min((limits.most / COPIES).into());
    let count = len.div_ceil(copies.largest.max(1)).max(usual).max(1);
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;
    const SMALLEST: u64 = 5 << 20;
    const LARGEST: u64 = 5 << 30;
    const MOST: u32 = 10_000;
    const USUAL: u64 = 64 << 20;

    /// With the limits of S3.
    fn size(first: u64, number: u32, equal: bool) -> u64 {
        let limits = PartLimits { smallest: SMALLEST, largest: LARGEST, most: MOST, copies: None };
        super::size(&limits, first, number, equal)
    }

    fn copies(len: u64) -> Vec<Range> {
        let copies = CopyLimits { smallest: SMALLEST, largest: LARGEST, usual: USUAL };
        let limits =
            PartLimits { smallest: SMALLEST, largest: LARGEST, most: MOST, copies: Some(copies) };
        super::copies(copy_count(&limits, copies, len), len).collect()
    }

    fn firsts() -> impl Iterator<Item = u64> {
        (20..33).map(|bits| 1 << bits).chain([
            0,
            1,
            SMALLEST,
            SMALLEST + 1,
            8 << 20,
            LARGEST,
            u64::MAX,
        ])
    }

    #[test]
    fn parts_are_allowed_and_never_shrink() {
        for first in firsts() {
            let mut before = 0;
            for number in 1..=MOST {
                let size = size(first, number, false);
                assert!((SMALLEST..=LARGEST).contains(&size), "{first} {number} {size}");
                assert!(size >= before, "{first} {number}");
                before = size;
            }
        }
    }

    #[test]
    fn ten_thousand_parts_hold_five_tebibytes() {
        for first in firsts() {
            let total: u64 = (1..=MOST).map(|number| size(first, number, false)).sum();
            assert!(total >= 5 * TIB, "{first}: {total}");
        }
    }

    #[test]
    fn parts_grow_late() {
        assert!((1..=1000).all(|number| size(8 << 20, number, false) == 8 << 20));
        assert_eq!(size(8 << 20, 1001, false), 16 << 20);
        assert_eq!(size(5 << 20, 1000, false), 5 << 20);
        // Of an object of 1 TB, parts are at most 512 MiB.
        let mut total = 0;
        let mut number = 0;
        while total < 1_000_000_000_000 {
            number += 1;
            total += size(8 << 20, number, false);
        }
        assert_eq!(size(8 << 20, number, false), 512 << 20);
    }

    #[test]
    fn equal_parts_are_equal() {
        for first in firsts() {
            let expected = first.clamp(SMALLEST, LARGEST);
            assert!((1..=MOST).all(|number| size(first, number, true) == expected));
        }
    }

    #[test]
    fn copies_cover_an_object_without_gap() {
        for (len, count) in [
            (0, 1),
            (1, 1),
            (SMALLEST, 1),
            (USUAL, 1),
            (USUAL + 1, 2),
            (LARGEST, 80),
            (2 * LARGEST + 7, 161),
            // An eighth of all parts, and no more than the store can copy at once.
            (TIB, 1250),
            (5 * TIB, 1250),
            (45 * TIB, 9216),
        ] {
            let ranges = copies(len);
            assert_eq!(ranges.len(), count, "{len}");
            let mut end = 0;
            for range in &ranges {
                assert_eq!(range.start, end, "{len}");
                end = range.end;
                let size = range.end - range.start;
                assert!(size <= LARGEST, "{len}");
                assert!(ranges.len() == 1 || size >= SMALLEST, "{len}");
            }
            assert_eq!(end, len);
        }
    }

    #[test]
    fn any_limits_are_kept() {
        for (smallest, largest, most) in
            [(1, 4000 << 20, 50_000), (0, u64::MAX, u32::MAX), (1 << 20, 1 << 20, 3), (7, 9, 0)]
        {
            let limits = PartLimits { smallest, largest, most, copies: None };
            for number in (1..=most.min(60_000)).chain([most, u32::MAX]) {
                let size = super::size(&limits, 8 << 20, number, false);
                assert!((smallest.max(1)..=largest).contains(&size), "{limits:?} {number}: {size}");
            }
        }
    }
}
