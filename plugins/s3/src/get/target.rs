//! Where the GETs of a bucket are sent.

use crate::connection::{Bucket, Corrections, Route};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::attempt;
use tf_fs_object_store::http::PoolKey;
use tf_fs_plugin::prelude::*;

/// What the GETs of a bucket have shown about it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Whether its responses need what only the official client supports.
    needs_sdk: AtomicBool,
    /// Seconds by which the store's clock is ahead.
    clock_ahead: AtomicI64,
    corrections: Corrections,
}

impl Bucket {
    pub(super) fn place(&self, route: &Route) -> Result<PoolKey> {
        let tls = if route.https { Some(self.tls_config()?) } else { None };
        Ok(PoolKey::new(&route.host, route.port, tls))
    }

    /// Returns whether the official client has to make the request.
    pub(super) fn is_for_sdk(&self, route: &Route) -> bool {
        route.is_proxied || !route.is_plain || self.shown.needs_sdk.load(Ordering::Relaxed)
    }

    /// Makes the official client make all further requests.
    pub(super) fn use_sdk(&self) {
        self.shown.needs_sdk.store(true, Ordering::Relaxed);
    }

    /// Returns the store's time.
    pub(super) fn now(&self) -> SystemTime {
        self.shown.now()
    }
}

impl Shown {
    /// Returns the store's time, as far as it has told.
    fn now(&self) -> SystemTime {
        let ahead = self.clock_ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        let now = SystemTime::now();
        let moved = if ahead < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        moved.unwrap_or(now)
    }

    /// Returns whether a store with this time refuses what is signed for this machine's time, or for the one that it
    /// told before: S3 does so from a difference of 15 minutes on.
    pub(crate) fn is_far_from(&self, there: SystemTime) -> bool {
        let from = |now: SystemTime| now.duration_since(there).unwrap_or_else(|far| far.duration());
        from(self.now()).max(from(SystemTime::now())) >= Duration::from_secs(15 * 60)
    }

    /// Sets the store's clock. Returns whether a request that was refused for its time may be retried at once.
    pub(crate) fn set_clock(&self, there: SystemTime) -> bool {
        let now = SystemTime::now();
        let ahead = match there.duration_since(now) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(0),
            Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap_or(0),
        };
        let before = self.clock_ahead.swap(ahead, Ordering::Relaxed);
        let attempt = attempt();
        let may = self.corrections.allow(before.abs_diff(ahead) > 60, attempt.began);
        // The SDK signs with its own clock, which this response sets for the second attempt.
        may || attempt.number == 1
    }
}
