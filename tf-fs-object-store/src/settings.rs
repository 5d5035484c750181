//! The settings of a bucket.

use crate::DiskCache;
use std::time::Duration;

/// How the engine uses one bucket. Start from [`Settings::default`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The most attempts of a request.
    pub max_attempts: u32,
    /// How long a failed request is retried.
    pub retry_timeout: Duration,
    /// The longest wait before the second attempt. It doubles with each further one.
    pub retry_backoff: Duration,
    /// How long a request may make no progress.
    pub stall_timeout: Duration,
    /// Bytes of a ranged GET.
    pub read_part: usize,
    /// Ranged GETs in flight for one file.
    pub read_concurrency: usize,
    /// Bytes of a part of an upload, and the size from which an object is uploaded in parts.
    pub write_part: usize,
    /// Whether all parts of an upload have the same size.
    pub write_parts_equal: bool,
    /// Whether a flush makes visible what was written so far, or only the close does.
    pub publish_on_flush: bool,
    /// The least time between two flushes that make something visible.
    pub flush_interval: Duration,
    /// Parts in flight for one file.
    pub write_concurrency: usize,
    /// How long a listing is trusted.
    pub listing_ttl: Duration,
    /// The most names that one operation keeps of the store's listings.
    pub max_listed_names: usize,
    /// How to detect that the responses of an open file are of one version.
    pub version_check: VersionCheck,
    /// Where read blocks are kept on a local disk. Nowhere by default.
    pub disk_cache: Option<DiskCache>,
}

/// How to detect that the responses of an open file are of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionCheck {
    /// Size, ETag and modification time.
    #[default]
    Etag,
    /// The size alone, for servers whose nodes do not agree on the rest. A change of equal length is not seen.
    Size,
}

impl Settings {
    /// Returns the settings changed by `change`.
    ///
    /// ```
    /// # use tf_fs_object_store::Settings;
    /// let settings = Settings::default().with(|settings| settings.read_part = 1 << 20);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Default for Settings {
    /// Returns a minute of attempts, parts of 8 MiB, and listings that are trusted for a second.
    fn default() -> Self {
        Self {
            max_attempts: 1_000_000,
            retry_timeout: Duration::from_secs(60),
            retry_backoff: Duration::from_millis(100),
            stall_timeout: Duration::from_secs(20),
            read_part: 8 << 20,
            read_concurrency: 32,
            write_part: 8 << 20,
            write_parts_equal: false,
            publish_on_flush: true,
            flush_interval: Duration::ZERO,
            write_concurrency: 16,
            listing_ttl: Duration::from_secs(1),
            max_listed_names: 10_000_000,
            version_check: VersionCheck::Etag,
            disk_cache: None,
        }
    }
}
