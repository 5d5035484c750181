//! Settings: environment, settings file, TensorFlow's options. [`tf_fs_object_store::config`] reads them.

pub use tf_fs_object_store::config::Secret;

use std::path::PathBuf;
use std::time::Duration;
use tf_fs_object_store::config::{self, FromValues, Kind, Setting, Table, Values};
use tf_fs_object_store::{DiskCache, VersionCheck};
use tf_fs_plugin::prelude::*;

/// All settings.
pub(crate) type Configured = config::Configured<Settings>;

/// The current settings.
pub(crate) type Config = config::Config<Settings>;

static TABLE: Table = Table {
    scheme: "https",
    prefix: "TF_HTTPS_",
    file_variable: "TF_HTTPS_CONFIG",
    help: "the README of tensorflow-https has all settings",
    settings: SETTINGS,
    section: "bucket",
    bucket: |name| Ok(name.into()),
    parent: |_| None,
    ignores: |_, _| false,
};

const MIB: u64 = 1 << 20;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All of them, in the order of the README.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting::new("bearer_tokens", &["TF_HTTPS_BEARER_TOKENS"], Kind::Secret, "",
        "Tokens by host: `host=TOKEN`, several with spaces between them.").of_process(),
    Setting::new("headers", &["TF_HTTPS_HEADERS"], Kind::Secret, "",
        "Headers by host: `host=Name: value`, one a line.").of_process(),
    Setting::new("user_agent", &[], Kind::Text, "",
        "The `User-Agent` header. Not set: `tensorflow-https/` and its version.").of_process(),
    Setting::new("netrc", &["NETRC"], Kind::Text, "", "A file with names and passwords by host. Not set: `~/.netrc`.").of_process(),
    Setting::new("ca_file", &[], Kind::File, "",
        "Certificates (PEM) to trust instead of the system's. `SSL_CERT_FILE` and `SSL_CERT_DIR` work too.").of_process(),
    Setting::new("local_redirects", &[], Kind::Flag, "0",
        "Follow redirects into this machine and its private network from hosts that are outside of it.").of_process(),
    Setting::new("memory_budget_bytes", &[], Kind::Bytes { min: 16 * MIB, max: 1 << 40 }, "512MiB",
        "Memory for read-ahead and files held in memory, for all files together.").of_process(),
    Setting::new("threads", &[], Kind::Count { min: 1, max: 64 }, "4", "Worker threads of the process.").of_process(),
    Setting::new("read_concurrency", &[], Kind::Count { min: 1, max: 256 }, "16", "Requests in flight for one file.").of_process(),
    Setting::new("spool_bytes", &[], Kind::Bytes { min: 1, max: 1 << 50 }, "64GiB",
        "The largest file that is received whole, from a server without ranges.").of_process().vital(),
    Setting::new("gzip_bytes", &[], Kind::Bytes { min: 1, max: 1 << 50 }, "8GiB",
        "The largest file that a compressed body may become.").of_process().vital(),
    Setting::new("gzip_ratio", &[], Kind::Count { min: 1, max: 1100 }, "200",
        "How many times as large as its compressed body a file of more than 16 MiB may be.").of_process().vital(),
    Setting::new("spool_directory", &[], Kind::Text, "",
        "Where a file that is received whole is kept while it is open. Not set: `TMPDIR`, else `/tmp`.").of_process(),
    Setting::new("retry_timeout_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "60000",
        "How long a failing request is tried again.").of_process(),
    Setting::new("stall_timeout_ms", &[], Kind::Milliseconds { min: 1, max: DAY_MS }, "20000",
        "How long a request may make no progress.").of_process(),
    Setting::new("connect_timeout_ms", &[], Kind::Milliseconds { min: 1, max: DAY_MS }, "10000",
        "How long a connection may take.").of_process(),
    Setting::new("listing_ttl_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "1000",
        "How long a response about a URL is cached.").of_process(),
    Setting::new("version_check", &[], Kind::OneOf(&["etag", "size"]), "etag",
        "How to detect that an open file has changed. `etag`: size, ETag and modification time. `size`: the size alone, for servers \
         whose nodes differ in the rest. A change of equal length is then not noticed.").of_process(),
    Setting::new("disk_cache", &[], Kind::DiskCache, "",
        "Cache the bytes that are read in this directory on a local disk, up to this size.").of_process(),
];

/// The settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// `host=token`, several with spaces between them.
    pub bearer_tokens: Option<Secret>,
    /// `host=Name: value`, one a line.
    pub headers: Option<Secret>,
    /// The user agent of requests.
    pub user_agent: Option<String>,
    /// Names and passwords by host.
    pub netrc: Option<PathBuf>,
    /// Whether redirects from other networks may lead to this machine and its private network.
    pub local_redirects: bool,
    /// Bytes of the largest file that is received as a whole, from a server without ranges.
    pub spool: u64,
    /// Bytes of the largest file that a compressed body may become.
    pub gzip: u64,
    /// How many times as large as its compressed body a file of more than 16 MiB may be.
    pub gzip_ratio: u64,
    /// Where such a file is kept while it is open, if it is larger than 16 MiB.
    pub spool_directory: Option<PathBuf>,
    /// Requests in flight for one file.
    pub read_concurrency: usize,
    /// How long a failed request is retried.
    pub retry_timeout: Duration,
    /// How long a request may make no progress.
    pub stall_timeout: Duration,
    /// How long it may take to make a connection.
    pub connect_timeout: Duration,
    /// How long a server's response about a name is trusted.
    pub cache: Duration,
    /// How to detect that an open file has changed.
    pub version_check: VersionCheck,
    /// A directory on a local disk that caches read bytes, and its size.
    pub disk_cache: Option<DiskCache>,
}

impl FromValues for Settings {
    const TABLE: &'static Table = &TABLE;

    fn from_values(values: &Values<'_>) -> Result<Self> {
        let path = |key| values.text(key).map(PathBuf::from);
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = || home.map(|home| PathBuf::from(home).join(".netrc"));
        let engine = values.engine();
        Ok(Self {
            ca_file: path("ca_file"),
            bearer_tokens: values.secret("bearer_tokens"),
            headers: values.secret("headers"),
            user_agent: values.text("user_agent"),
            netrc: path("netrc").or_else(home),
            local_redirects: values.flag("local_redirects").unwrap_or(false),
            spool: values.number("spool_bytes"),
            gzip: values.number("gzip_bytes"),
            gzip_ratio: values.number("gzip_ratio"),
            spool_directory: path("spool_directory"),
            read_concurrency: engine.read_concurrency,
            retry_timeout: engine.retry_timeout,
            stall_timeout: engine.stall_timeout,
            connect_timeout: values.time("connect_timeout_ms"),
            cache: engine.listing_ttl,
            version_check: engine.version_check,
            disk_cache: engine.disk_cache,
        })
    }
}

impl Default for Settings {
    /// Returns the defaults, without passwords.
    fn default() -> Self {
        let values = Values::defaults(&TABLE);
        let settings = Self::from_values(&values).expect("the defaults fit together");
        Self { netrc: None, ..settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_and_mistakes_are_named() {
        let of = |name: &str, value: &str| {
            let lookup = |wanted: &str| (wanted == name).then(|| value.into());
            Configured::of_variables(&lookup).map(|configured| (*configured.default).clone())
        };
        let none = of("", "").unwrap();
        assert_eq!(Settings { netrc: None, ..none }, Settings::default());
        assert_eq!(of("NETRC", "/h/.netrc").unwrap().netrc, Some("/h/.netrc".into()));
        let stall = of("TF_HTTPS_STALL_TIMEOUT_MS", "5s").unwrap().stall_timeout;
        assert_eq!(stall, Duration::from_secs(5));
        let cache = of("TF_HTTPS_DISK_CACHE", "/c:1GiB").unwrap().disk_cache;
        assert_eq!(cache, Some(DiskCache::new("/c", 1 << 30)));
        let check = of("TF_HTTPS_VERSION_CHECK", "size").unwrap().version_check;
        assert_eq!(check, VersionCheck::Size);
        let error = of("TF_HTTPS_CA_FILE", "/no/such/file").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("TF_HTTPS_CA_FILE"), "{error}");
        let secret = of("TF_HTTPS_BEARER_TOKENS", "host=sesame").unwrap();
        assert!(secret.bearer_tokens.is_some() && !format!("{secret:?}").contains("sesame"));
        let secret = of("TF_HTTPS_HEADERS", "host=X: sesame\nhost=Y: open").unwrap();
        assert_eq!(secret.headers.as_ref().unwrap().expose(), "host=X: sesame\nhost=Y: open");
        assert!(!format!("{secret:?}").contains("sesame"));
    }

    #[test]
    fn the_readme_has_this_table() {
        let readme = include_str!("../README.md");
        let (_, rest) =
            readme.split_once("<!-- settings -->\n").expect("the mark before the table");
        let (table, _) = rest.split_once("<!-- end of settings -->").expect("the mark after it");
        let ours = TABLE.markdown();
        assert_eq!(table, ours, "put this into README.md:\n{ours}");
    }
}
