//! How large the parts of an upload are.

use std::ops::Range;

/// The smallest part that S3 takes, but for the last of an upload, and the smallest object of which a
/// part of an upload can be copied.
pub(super) const SMALLEST: u64 = 5 << 20;
/// The largest part that S3 takes, uploaded or copied.
pub(super) const LARGEST: u64 = 5 << 30;
/// The most parts that an upload can have.
pub(super) const MOST: u32 = 10_000;

/// Parts have the same size for this long; then they double each time.
const STEP: u32 = 1_000;
/// What the doubling starts from at least, so that 10,000 parts suffice for 5 TiB.
const GROWN: u64 = 8 << 20;

/// The bytes of part `number`, counted from 1, if the first parts have `first` bytes; with `equal` all
/// have as many.
///
/// An object of 8 GiB is made of parts of 8 MiB, one of 120 GiB ends with parts of 64 MiB, one of 5 TiB with
/// parts of 4 GiB. Memory is needed for whole parts, so they grow as late as they can.
pub(super) fn size(first: u64, number: u32, equal: bool) -> u64 {
    let first = first.clamp(SMALLEST, LARGEST);
    let doublings = number.saturating_sub(1).min(MOST - 1) / STEP;
    if equal || doublings == 0 {
        return first;
    }
    // At most 9 doublings of at most 5 GiB: far from overflow.
    (first.max(GROWN) << doublings).min(LARGEST)
}

/// The ranges in which an object of `len` bytes is copied: one, or several of nearly equal size if it is
/// larger than a part may be.
pub(super) fn copies(len: u64) -> impl Iterator<Item = Range<u64>> {
    let count = len.div_ceil(LARGEST).max(1);
    let each = len.div_ceil(count);
    (0..count).map(move |index| index * each..((index + 1) * each).min(len))
}

/// How many ranges [`copies`] gives.
pub(super) fn copy_count(len: u64) -> u32 {
    u32::try_from(len.div_ceil(LARGEST).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;

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
        // Of an object of 1 TB, parts are no larger than 512 MiB.
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
        for len in
            [0, 1, SMALLEST, LARGEST - 1, LARGEST, LARGEST + 1, 5 * TIB, 45 * TIB, 2 * LARGEST + 7]
        {
            let ranges: Vec<_> = copies(len).collect();
            assert_eq!(ranges.len(), copy_count(len) as usize, "{len}");
            assert!(ranges.len() <= MOST as usize);
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
}
