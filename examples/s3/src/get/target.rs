//! Where the GETs of a bucket go.

use crate::connection::{Bucket, Route};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// What the GETs of a bucket have shown of it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Its answers need what only the official client can do.
    needs_sdk: AtomicBool,
    /// Seconds by which the store's clock is ahead.
    clock_ahead: AtomicI64,
}

/// What connections are made to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    /// `None`: in the clear.
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
}

impl Bucket {
    pub(super) fn place(&self, route: &Route) -> Result<Place> {
        let tls = if route.https { Some(self.tls_config()?) } else { None };
        // An IPv6 address stands in brackets in a URL only.
        let host = route.host.trim_matches(['[', ']']).to_owned();
        Ok(Place { host, port: route.port, tls })
    }

    /// Whether the official client has to be asked.
    pub(super) fn is_for_sdk(&self, route: &Route) -> bool {
        route.is_proxied || !route.is_plain || self.shown.needs_sdk.load(Ordering::Relaxed)
    }

    /// From now on the official client is asked.
    pub(super) fn use_sdk(&self) {
        self.shown.needs_sdk.store(true, Ordering::Relaxed);
    }

    /// The store's time.
    pub(super) fn now(&self) -> SystemTime {
        let ahead = self.shown.clock_ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        let now = SystemTime::now();
        let moved = if ahead < 0 { now.checked_sub(by) } else { now.checked_add(by) };
        moved.unwrap_or(now)
    }

    /// The store says what time it is; whether that is news.
    pub(super) fn set_clock(&self, there: SystemTime) -> bool {
        let now = SystemTime::now();
        let ahead = match there.duration_since(now) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(0),
            Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap_or(0),
        };
        let before = self.shown.clock_ahead.swap(ahead, Ordering::Relaxed);
        before.abs_diff(ahead) > 60
    }
}

impl PartialEq for Place {
    // Connections made with other TLS settings are others.
    fn eq(&self, other: &Self) -> bool {
        let tls = |place: &Self| place.tls.as_ref().map(Arc::as_ptr);
        self.port == other.port && self.host == other.host && tls(self) == tls(other)
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port, self.tls.is_some()).hash(state);
    }
}
