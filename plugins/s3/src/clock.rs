//! The store's clock, which signatures have to agree with.

use crate::region::Corrections;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::{attempt, http};

const MINUTE: Duration = Duration::from_secs(60);

/// The store's clock, as far as its responses have told.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Seconds by which it is ahead.
    ahead: AtomicI64,
    corrections: Corrections,
}

impl Clock {
    /// Returns the store's time.
    pub(crate) fn now(&self) -> SystemTime {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        let now = SystemTime::now();
        let moved = if ahead < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        moved.unwrap_or(now)
    }

    /// Returns whether a store with this time refuses what is signed for this machine's time, or for the one that it
    /// told before: S3 does so from a difference of 15 minutes on.
    pub(crate) fn is_far_from(&self, there: SystemTime) -> bool {
        let far = distance(self.now(), there).max(distance(SystemTime::now(), there));
        far >= Duration::from_secs(15 * 60)
    }

    /// Learns the time that a response tells, where it is another by more than a minute.
    pub(crate) fn hear(&self, there: SystemTime) {
        if distance(self.now(), there) > MINUTE {
            self.set(there);
        }
    }

    /// Returns whether the time is known to be another by more than a minute than it was thought to be `then`, a moment ago.
    pub(crate) fn was_wrong(&self, then: SystemTime) -> bool {
        distance(self.now(), then) > MINUTE
    }

    /// Sets the store's time. Returns whether a request that was refused for its time may be retried at once.
    pub(crate) fn set(&self, there: SystemTime) -> bool {
        let now = SystemTime::now();
        // Signatures have years of four digits, and a clock is not off by a century.
        if distance(now, there) > Duration::from_secs(100 * 365 * 24 * 3600) {
            return false;
        }
        let ahead = match there.duration_since(now) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(0),
            Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap_or(0),
        };
        let before = self.ahead.swap(ahead, Ordering::Relaxed);
        self.corrections.allow(before.abs_diff(ahead) > MINUTE.as_secs(), attempt().began)
    }
}

/// Returns the time that a response tells with this header. The date of a response from a cache is of an earlier time.
pub(crate) fn told<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<SystemTime> {
    header("date").filter(|_| header("age").is_none()).and_then(http::date)
}

fn distance(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|far| far.duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_that_no_signature_can_have_is_not_the_stores_time() {
        let clock = Clock::default();
        let year_9999 = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        assert!(clock.is_far_from(year_9999) && !clock.set(year_9999));
        assert!(distance(clock.now(), SystemTime::now()) < Duration::from_secs(60));
    }
}
