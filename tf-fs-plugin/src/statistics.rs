//! The result of `stat`.

use std::time::{Duration, SystemTime};

/// Length, modification time and kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatistics {
    /// Length in bytes; 0 for a directory.
    pub length: u64,
    /// When the content was last modified; the Unix epoch if that is not known.
    pub modified: SystemTime,
    /// Whether the path is a directory.
    pub is_directory: bool,
}

impl FileStatistics {
    /// Returns the statistics of a file of `length` bytes.
    #[must_use]
    pub fn file(length: u64) -> Self {
        Self { length, modified: SystemTime::UNIX_EPOCH, is_directory: false }
    }

    /// Returns the statistics of a directory.
    #[must_use]
    pub fn directory() -> Self {
        Self { length: 0, modified: SystemTime::UNIX_EPOCH, is_directory: true }
    }

    /// Sets the modification time.
    #[must_use]
    pub fn with_modified(self, modified: SystemTime) -> Self {
        Self { modified, ..self }
    }

    /// Returns the modification time in nanoseconds since the Unix epoch, negative before it, within
    /// the range of 64 bits (the years 1677 to 2262).
    #[must_use]
    pub fn modified_nanos(&self) -> i64 {
        // Unknown, as in many simple filesystems: there is nothing to compute.
        if self.modified == SystemTime::UNIX_EPOCH {
            return 0;
        }
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        match self.modified.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        }
    }
}
