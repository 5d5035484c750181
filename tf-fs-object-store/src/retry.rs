//! How long a failing request is made again: by time, whatever the number of its attempts.

use crate::Settings;
use std::fmt::Display;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that the system may hold of an upload. A connection is taken to move one a microsecond at least.
pub const BUFFERED: u64 = 8 << 20;

/// What the system's buffers may add to `stall`.
pub fn longest_grace(stall: Duration) -> Duration {
    Duration::from_micros(BUFFERED).min(stall * 4)
}

/// No request that makes no progress is waited for longer than this.
pub fn longest_patience(stall: Duration) -> Duration {
    stall + longest_grace(stall)
}

/// No wait between attempts is longer, unless the first one is or the store requests more. Short, so that work goes on
/// soon after an outage.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// A `Retry-After` is honoured up to this.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(20);
/// So many attempts are made where waiting does not end the cause: an answer that cannot be right, a certificate that is
/// not trusted.
pub const WRONG_ANSWERS: u32 = 6;

/// Time lost before this is not worth a warning.
const QUIET: Duration = Duration::from_secs(3);
/// The least time between two warnings of a process, in milliseconds.
const SILENCE_MS: u64 = 30_000;

/// The time that a request may still lose to failures.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    all: Duration,
    left: Duration,
    /// What one attempt counts at most: a transfer may have moved for an hour before it broke.
    attempt: Duration,
}

impl Patience {
    /// All of the time that the settings allow.
    pub fn new(settings: &Settings) -> Self {
        let all = settings.retry_timeout;
        // Half: a second attempt is always made.
        Self { all, left: all, attempt: longest_patience(settings.stall_timeout).min(all / 2) }
    }

    /// After an attempt that took `took` and failed, `waited` after the one before it: the longest wait until the next
    /// attempt, `None` if there is none.
    pub fn lose(&mut self, waited: Duration, took: Duration) -> Option<Duration> {
        self.left = self.left.saturating_sub(waited.saturating_add(took.min(self.attempt)));
        (!self.left.is_zero()).then_some(self.left)
    }

    /// Tells whoever reads the log that something is waited for, once in a while.
    pub fn warn(&self, what: &dyn Display, why: impl FnOnce() -> String) {
        static WARNED: AtomicU64 = AtomicU64::new(0);
        if self.all.saturating_sub(self.left) < QUIET {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let before = WARNED.load(Ordering::Relaxed);
        if now.abs_diff(before) >= SILENCE_MS
            && WARNED.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            log::warn!(
                "{what}: {}; trying again for up to {} s more",
                why(),
                self.left.as_secs().max(1)
            );
        }
    }
}

/// How long to wait after so many failures: at random, so that many requests do not come back at once.
pub fn backoff(first: Duration, failures: u32) -> Duration {
    // Keyed anew for each value.
    let random = RandomState::new().hash_one(0);
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(10));
    let longest = doubled.min(LONGEST_BACKOFF.max(first));
    longest.mul_f64(0.1 + 0.9 * (random >> 11) as f64 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(all: u64, stall: u64) -> Patience {
        let settings = Settings {
            retry_timeout: Duration::from_millis(all),
            stall_timeout: Duration::from_millis(stall),
            ..Settings::default()
        };
        Patience::new(&settings)
    }

    #[test]
    fn waits_and_attempts_count() {
        let second = Duration::from_secs(1);
        let mut patience = patience(10_000, 1_000);
        assert_eq!(patience.lose(Duration::ZERO, second), Some(9 * second));
        assert_eq!(patience.lose(3 * second, second), Some(5 * second));
        assert_eq!(patience.lose(4 * second, second), None);
        assert_eq!(patience.lose(Duration::ZERO, Duration::ZERO), None);
    }

    #[test]
    fn a_long_transfer_that_breaks_is_begun_again() {
        let hour = Duration::from_secs(3600);
        let mut short = patience(60_000, 20_000);
        // 20 s, and what the system may hold back.
        let left = short.lose(Duration::ZERO, hour).expect("more attempts");
        assert!((Duration::from_secs(31)..Duration::from_secs(40)).contains(&left), "{left:?}");
        let mut long = patience(60_000, 3_600_000);
        assert_eq!(long.lose(Duration::ZERO, hour), Some(Duration::from_secs(30)));
        assert_eq!(long.lose(Duration::ZERO, hour), None);
        assert_eq!(patience(0, 1).lose(Duration::ZERO, Duration::ZERO), None, "switched off");
    }
}
