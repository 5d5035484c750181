//! A server of one's own, known to the plugin.

use s3_server::{Handle, Options, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tf_fs_plugin::{FilesystemOption, OptionValues, Result};
use tf_plugin_testing::filesystem::Host;

/// The host of this process, with the plugin loaded.
///
/// # Panics
/// If the plugin does not load.
pub fn host() -> &'static Host {
    static HOST: LazyLock<Host> = LazyLock::new(|| {
        let host = Host::load::<s3::S3>().expect("the plugin loads");
        // Tests count requests.
        host.read_once();
        host
    });
    &HOST
}

/// A server with a bucket that no other test has.
#[derive(Debug)]
pub struct Store {
    server: Handle,
    bucket: String,
    /// Runs as long as the store lives.
    _running: Mutex<Server>,
}

impl std::ops::Deref for Store {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.server
    }
}

/// Faults are met within milliseconds, hanging ones given up after 0.8 s.
pub const IMPATIENT: &[(&str, &str)] = &[
    ("max_attempts", "3"),
    ("retry_backoff_ms", "5"),
    ("connect_timeout_ms", "1000"),
    ("stall_timeout_ms", "800"),
    ("listing_ttl_ms", "0"),
];

/// The server does as Amazon S3, and so is believed as that is: the tests of `quirks` are of stores that nothing is
/// known of.
const TRUSTED: [(&str, &str); 3] = [
    ("put_conditions", "quoted"),
    ("complete_conditions", "quoted"),
    ("copy_conditions", "quoted"),
];

impl Store {
    /// A store whose bucket has the default settings. `topic` is part of the bucket's name: small letters, digits and
    /// hyphens.
    ///
    /// # Panics
    /// If the server does not start.
    #[must_use]
    pub fn new(topic: &str) -> Self {
        Self::with(topic, &[])
    }

    /// A store with these settings of its bucket in addition to those that lead to it, as in `CONFIGURATION.md`.
    ///
    /// # Panics
    /// If the server does not start or a setting is refused.
    #[must_use]
    pub fn with(topic: &str, settings: &[(&str, &str)]) -> Self {
        Self::start(topic, Options { fast: true, threads: 1, ..Options::default() }, settings)
    }

    /// A store with a server of this kind.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    #[must_use]
    pub fn start(topic: &str, options: Options, settings: &[(&str, &str)]) -> Self {
        let store = Self::hidden(topic, options);
        store.introduce(host(), settings).expect("the settings are accepted");
        store
    }

    /// Makes the store known to the plugin of a host, with these settings in addition to those that lead to it.
    ///
    /// # Errors
    /// If one is refused, or the host has no `s3`.
    pub fn introduce(&self, host: &Host, settings: &[(&str, &str)]) -> Result<()> {
        let mut all = TRUSTED.to_vec();
        all.extend_from_slice(settings);
        self.introduce_bucket(host, &self.bucket, &all)
    }

    /// A store with a server of this kind, of which the plugin does not know what it can do.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    #[must_use]
    pub fn unknown(topic: &str, options: Options) -> Self {
        let store = Self::hidden(topic, options);
        store.introduce_bucket(host(), &store.bucket, &[]).expect("the settings are accepted");
        store
    }

    /// Makes a bucket of the server known, with no more said of the store than what leads to it.
    ///
    /// # Errors
    /// As [`introduce`](Self::introduce).
    pub fn introduce_bucket(
        &self,
        host: &Host,
        bucket: &str,
        settings: &[(&str, &str)],
    ) -> Result<()> {
        let endpoint = self.endpoint();
        let mut all = vec![
            ("endpoint_url", &*endpoint),
            ("addressing_style", "path"),
            ("region", "us-east-1"),
            ("access_key_id", self.access_key()),
            ("secret_access_key", self.secret_key()),
        ];
        all.extend_from_slice(settings);
        Self::set_on(host, bucket, &all)
    }

    /// A store that the plugin of this process knows nothing of: for child processes.
    ///
    /// # Panics
    /// If the server does not start.
    #[must_use]
    pub fn hidden(topic: &str, options: Options) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let bucket = format!("{topic}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = Server::start(options).expect("the server starts");
        server.create_bucket(&bucket);
        Self { server: server.handle(), bucket, _running: Mutex::new(server) }
    }

    /// Changes settings of the bucket.
    ///
    /// # Panics
    /// If one is refused.
    pub fn set(&self, settings: &[(&str, &str)]) {
        Self::set_on(host(), &self.bucket, settings).expect("the settings are accepted");
    }

    fn set_on(host: &Host, bucket: &str, settings: &[(&str, &str)]) -> Result<()> {
        let options: Vec<_> = settings
            .iter()
            .map(|(key, value)| {
                let name = format!("bucket.{bucket}.{key}");
                FilesystemOption::new(name, OptionValues::Buffer(vec![value.as_bytes().to_vec()]))
            })
            .collect();
        host.filesystem("s3")?.set_filesystem_configuration(&options)
    }

    /// The environment in which a child process reaches this store, whatever the bucket.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", self.access_key().to_owned()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key().to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// `s3://` with the bucket and this key, as it is.
    #[must_use]
    pub fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    /// Writes an object without the plugin.
    pub fn put(&self, key: &str, content: impl Into<Vec<u8>>) {
        let content: Vec<u8> = content.into();
        self.server.put(&self.bucket, key, content);
    }

    /// An object's content, read without the plugin.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.server.get(&self.bucket, key).map(|object| object.bytes.to_vec())
    }

    /// All keys, listed without the plugin.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.server.keys(&self.bucket)
    }

    /// The keys for which an upload is open.
    #[must_use]
    pub fn open_uploads(&self) -> Vec<String> {
        self.server.uploads(&self.bucket).into_iter().map(|upload| upload.key).collect()
    }

    /// The keys of uploads that nobody ended, except where a fault met what would have: the response with the upload's
    /// name, or an attempt to abort it. Of the requests since the log was emptied.
    #[must_use]
    pub fn unexplained_uploads(&self) -> Vec<String> {
        let mut left = self.open_uploads();
        if !left.is_empty() {
            let log = self.server.log();
            left.retain(|left| {
                !log.iter().any(|request| {
                    request.faulted
                        && ["CreateMultipartUpload", "AbortMultipartUpload"]
                            .contains(&request.operation)
                        && request.key.as_ref() == Some(left)
                })
            });
        }
        left
    }

    /// What `work` returns, and the requests that it made, by operation. Requests in the background that have begun
    /// when `work` returns count too.
    pub fn requests<T>(&self, work: impl FnOnce() -> T) -> (T, BTreeMap<String, usize>) {
        self.server.reset_log();
        let answer = work();
        self.quiet();
        (answer, self.server.counts())
    }

    /// Waits until no request is under way, but not longer than two seconds.
    pub fn quiet(&self) -> bool {
        crate::eventually(Duration::from_secs(2), || {
            self.server.log().iter().all(|request| request.duration.is_some())
        })
    }
}
