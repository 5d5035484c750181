//! Where blocks are kept, and how much.

use crate::units;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tf_fs_plugin::prelude::*;

/// The smallest limit, in bytes.
const LEAST: u64 = 16 << 20;

/// A directory on a local disk for blocks of objects, and the most bytes that they may take: `/directory:100GiB`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiskCache {
    directory: PathBuf,
    limit: u64,
}

impl DiskCache {
    /// Creates a setting for `limit` bytes in this directory, which is created at the first use.
    pub fn new(directory: impl Into<PathBuf>, limit: u64) -> Self {
        Self { directory: directory.into(), limit }
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the limit on the bytes of all blocks together.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

impl FromStr for DiskCache {
    type Err = Error;

    /// Parses a directory and a limit: `/directory:100GiB`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is not an absolute path, a colon, and at least 16 MiB.
    fn from_str(text: &str) -> Result<Self> {
        let parts = text.trim().rsplit_once(':');
        let cache = parts.and_then(|(directory, limit)| {
            let limit = units::bytes(limit.trim()).filter(|&limit| limit >= LEAST)?;
            directory.starts_with('/').then(|| Self::new(directory, limit))
        });
        cache.ok_or_else(|| {
            Error::invalid_argument(format_args!(
                "`{}` is not a directory and a size; write an absolute path, a colon and at least 16 MiB, \
                 such as /mnt/cache:100GiB",
                text.escape_debug()
            ))
        })
    }
}

impl fmt::Display for DiskCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.directory.display(), self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_a_size() {
        for (text, directory, limit) in [
            ("/mnt/cache:100GiB", "/mnt/cache", 100 << 30),
            (" /a:b c : 16 MiB ", "/a:b c ", 16 << 20),
            ("/c:2TiB", "/c", 2 << 40),
            ("/c:16777216", "/c", 16 << 20),
        ] {
            let cache: DiskCache = text.parse().unwrap();
            assert_eq!(cache, DiskCache::new(directory, limit), "{text}");
            assert_eq!(cache.to_string().parse::<DiskCache>().unwrap(), cache);
        }
        for text in [
            "",
            "/c",
            "/c:",
            "c:1GiB",
            "~/c:1GiB",
            ":1GiB",
            "/c:1MiB",
            "/c:-1",
            "/c:1.5GiB",
            "1GiB:/c",
        ] {
            let error = text.parse::<DiskCache>().unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text}");
            assert!(error.message().contains("/mnt/cache:100GiB"), "{error}");
        }
    }
}
