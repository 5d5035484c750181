//! Counters of the engine, for all files of a process.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Creates a counter at 0.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `n` to the count.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes of bodies of requests.
pub static BYTES_SENT: Counter = Counter::new();
/// Bytes of bodies of responses.
pub static BYTES_RECEIVED: Counter = Counter::new();
/// Lookups served by a recent listing.
pub static LISTING_HITS: Counter = Counter::new();
/// Lookups that needed a request.
pub static LISTING_MISSES: Counter = Counter::new();
/// Bytes of reads served by what was read ahead.
pub static READ_AHEAD_HIT_BYTES: Counter = Counter::new();
/// Bytes read ahead that no read wanted.
pub static READ_AHEAD_WASTED_BYTES: Counter = Counter::new();
/// Blocks read from the disk cache.
pub static DISK_CACHE_HITS: Counter = Counter::new();
/// Blocks that reads did not find in the disk cache.
pub static DISK_CACHE_MISSES: Counter = Counter::new();
/// Bytes read from the disk cache.
pub static DISK_CACHE_HIT_BYTES: Counter = Counter::new();
/// Bytes written to the disk cache.
pub static DISK_CACHE_STORED_BYTES: Counter = Counter::new();
/// Blocks that this process deleted to make room in the disk cache.
pub static DISK_CACHE_EVICTIONS: Counter = Counter::new();
/// Blocks of the disk cache that were broken.
pub static DISK_CACHE_BROKEN: Counter = Counter::new();

/// Bytes of a report that changes.
const REPORT: usize = 32 << 10;

/// Returns the text of a report that changes, such as `s3:///metrics.json`, filled up to one length with spaces: a size that
/// was queried before is still right when the report is read.
pub fn report(text: String) -> Vec<u8> {
    let mut text = text.into_bytes();
    text.resize(text.len().max(REPORT - 1), b' ');
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_keeps_all_of_its_text() {
        for len in [0, 1, REPORT - 2, REPORT - 1, REPORT, REPORT + 1, 3 * REPORT] {
            let text = "x".repeat(len);
            let report = report(text.clone());
            assert!(report.len() >= REPORT && report.ends_with(b"\n"), "{len}");
            assert!(report.starts_with(text.as_bytes()), "{len}");
        }
    }
}
