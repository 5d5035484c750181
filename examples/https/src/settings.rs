//! What can be set: by environment variables, read at the first use.

use std::path::PathBuf;
use std::time::Duration;
use tf_fs_object_store::DiskCache;
use tf_fs_plugin::prelude::*;

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Certificates in PEM that are trusted instead of the system's: `TF_HTTPS_CA_FILE`.
    pub ca_file: Option<PathBuf>,
    /// `host=token`, several with spaces between them: `TF_HTTPS_BEARER_TOKENS`. Never printed.
    pub bearer_tokens: Secret,
    /// Names and passwords by host: `NETRC`, else `~/.netrc`.
    pub netrc: Option<PathBuf>,
    /// Bytes that may be on their way for all files together: `TF_HTTPS_MEMORY_BYTES`.
    pub memory: usize,
    /// Bytes of the largest file that is read whole, from a server without ranges: `TF_HTTPS_SPOOL_BYTES`.
    pub spool: u64,
    /// Where such a file is kept while it is open, if it is larger than 16 MiB: `TF_HTTPS_SPOOL_DIRECTORY`, else `TMPDIR`.
    pub spool_directory: Option<PathBuf>,
    /// Requests in flight for one file: `TF_HTTPS_READ_CONCURRENCY`.
    pub read_concurrency: usize,
    /// How long a request that fails is made again: `TF_HTTPS_RETRY_TIMEOUT_MS`.
    pub retry_timeout: Duration,
    /// How long a request may make no progress: `TF_HTTPS_STALL_TIMEOUT_MS`.
    pub stall_timeout: Duration,
    /// How long it may take to make a connection: `TF_HTTPS_CONNECT_TIMEOUT_MS`.
    pub connect_timeout: Duration,
    /// How long what a server said of a name is believed: `TF_HTTPS_CACHE_MS`.
    pub cache: Duration,
    /// A directory on a local disk in which what is read is kept for the next time, and its size: `TF_HTTPS_DISK_CACHE`.
    pub disk_cache: Option<DiskCache>,
}

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "…" })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ca_file: None,
            bearer_tokens: Secret::default(),
            netrc: None,
            memory: 512 << 20,
            spool: 64 << 30,
            spool_directory: None,
            read_concurrency: 16,
            retry_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(10),
            cache: Duration::from_secs(1),
            disk_cache: None,
        }
    }
}

impl Settings {
    /// Those of these variables.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a number that is none, naming its variable.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str, default: u64| match text(name) {
            None => Ok(default),
            Some(value) => value.parse().ok().filter(|&value| value > 0).ok_or_else(|| {
                Error::invalid_argument(format_args!(
                    "{name}=`{}` is not a positive integer; correct or unset it",
                    value.escape_debug()
                ))
            }),
        };
        let time = |name: &str, default: Duration| {
            number(name, default.as_millis() as u64).map(Duration::from_millis)
        };
        let size = |name: &str, default: usize| {
            number(name, default as u64).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        };
        let standard = Self::default();
        let home = || text("HOME").map(|home| PathBuf::from(home).join(".netrc"));
        Ok(Self {
            ca_file: text("TF_HTTPS_CA_FILE").map(PathBuf::from),
            bearer_tokens: Secret(text("TF_HTTPS_BEARER_TOKENS").unwrap_or_default()),
            netrc: text("NETRC").map(PathBuf::from).or_else(home),
            memory: size("TF_HTTPS_MEMORY_BYTES", standard.memory)?,
            spool: number("TF_HTTPS_SPOOL_BYTES", standard.spool)?,
            spool_directory: text("TF_HTTPS_SPOOL_DIRECTORY").map(PathBuf::from),
            read_concurrency: size("TF_HTTPS_READ_CONCURRENCY", standard.read_concurrency)?,
            retry_timeout: time("TF_HTTPS_RETRY_TIMEOUT_MS", standard.retry_timeout)?,
            stall_timeout: time("TF_HTTPS_STALL_TIMEOUT_MS", standard.stall_timeout)?,
            connect_timeout: time("TF_HTTPS_CONNECT_TIMEOUT_MS", standard.connect_timeout)?,
            cache: time("TF_HTTPS_CACHE_MS", standard.cache)?,
            disk_cache: text("TF_HTTPS_DISK_CACHE")
                .map(|value| value.parse().context("TF_HTTPS_DISK_CACHE"))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_and_mistakes_are_named() {
        let of = |name: &'static str, value: &'static str| {
            Settings::from_variables(move |wanted| (wanted == name).then(|| value.to_owned()))
        };
        assert_eq!(of("", "").unwrap(), Settings::default());
        assert_eq!(of("HOME", "/h").unwrap().netrc, Some("/h/.netrc".into()));
        assert_eq!(
            of("TF_HTTPS_STALL_TIMEOUT_MS", "5").unwrap().stall_timeout,
            Duration::from_millis(5)
        );
        let cache = of("TF_HTTPS_DISK_CACHE", "/c:1GiB").unwrap().disk_cache;
        assert_eq!(cache, Some(DiskCache::new("/c", 1 << 30)));
        let error = of("TF_HTTPS_DISK_CACHE", "/c").unwrap_err();
        assert!(error.to_string().contains("TF_HTTPS_DISK_CACHE"), "{error}");
        for value in ["0", "-1", "1s", " "] {
            let error = of("TF_HTTPS_SPOOL_BYTES", value).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("TF_HTTPS_SPOOL_BYTES"), "{error}");
        }
    }

    #[test]
    fn tokens_are_not_printed() {
        let settings =
            Settings { bearer_tokens: Secret("host=sesame".into()), ..Settings::default() };
        assert!(!format!("{settings:?}").contains("sesame"));
    }
}
