//! `https://` and `http://` for TensorFlow, for reading.
//!
//! `tf-fs-object-store` does what no protocol decides: threads, memory, reading ahead, retries. HTTP itself is its
//! feature `http`.
//!
//! | Module | Job |
//! |---|---|
//! | `name` | URLs, exactly as written |
//! | `settings`, `credentials` | environment, settings file, options; tokens, headers and passwords by host |
//! | `cookies` | cookies, within one chain of redirects |
//! | `bucket` | a server and its files |
//! | `request`, `redirect` | one request, and where redirects lead |
//! | `response`, `error` | what a response says, whether to believe it, and what to do about an error |
//! | `whole` | files that their server sends only as a whole |

#![forbid(unsafe_code)]

mod bucket;
mod cookies;
mod credentials;
mod error;
#[cfg(test)]
mod fuzz;
mod name;
mod redirect;
mod request;
mod response;
mod settings;
mod whole;

use settings::{Config, Configured};
pub use settings::{Secret, Settings};

use bucket::{Origin, is_whole};
use credentials::Credentials;
use redirect::Clients;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, PoisonError, Weak};
use std::time::Instant;
use tf_fs_object_store::http::{HeaderValue, Http, HttpSettings, Proxy, Tls};
use tf_fs_object_store::{Connect, Connection, CurrentConnection, Name, Process, StoreError as _};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::{Unsupported, glob, sync::Mutex};
use whole::{Purpose, Spooled};

/// Files by URL. All values that [`Filesystem::new`] creates share one client, for all schemes.
#[derive(Clone, Debug)]
pub struct Https(Arc<Shared>);

#[derive(Default)]
struct Shared {
    config: Config,
    /// Settings for tests, in place of `config`.
    fixed: Option<Arc<Configured>>,
    /// Of this process, or of its parent until the first use after a fork.
    connection: CurrentConnection<Client>,
    /// Whole files that were received recently, or are open.
    spooled: Mutex<HashMap<Name, Received>>,
}

/// A whole file, when it was received, and with which settings.
struct Received {
    file: Weak<Spooled>,
    at: Instant,
    configured: Arc<Configured>,
}

static SHARED: LazyLock<Arc<Shared>> = LazyLock::new(Arc::default);

/// How this process reaches servers.
#[derive(Debug)]
pub struct Client {
    configured: Arc<Configured>,
    settings: Arc<Settings>,
    clients: Clients,
    credentials: Credentials,
    user_agent: Option<HeaderValue>,
}

/// A file open for reading, at the version that it had when it was opened.
pub enum File {
    /// A file of a server that sends any part of it.
    Parts(tf_fs_object_store::Reader<Https>),
    /// A file of a server that sends it only as a whole; it is here.
    #[doc(hidden)]
    Whole(Whole),
}

/// A file that was received as a whole.
pub struct Whole(Arc<Spooled>);

impl tf_fs_object_store::Client for Client {
    type Store = Origin;

    const SCHEMES: &'static [&'static str] = &["https", "http"];

    async fn open(&self, bucket: &Arc<str>) -> Result<Origin> {
        let mut settings = tf_fs_object_store::Settings::default();
        settings.retry_timeout = self.settings.retry_timeout;
        settings.stall_timeout = self.settings.stall_timeout;
        settings.read_concurrency = self.settings.read_concurrency;
        settings.listing_ttl = self.settings.cache;
        settings.disk_cache = self.settings.disk_cache.clone();
        settings.version_check = self.settings.version_check;
        Ok(Origin {
            clients: self.clients.clone(),
            base: bucket.to_string(),
            settings,
            credentials: self.credentials.clone(),
            user_agent: self.user_agent.clone(),
            locations: std::sync::Mutex::default(),
            wholes: Arc::default(),
            prefers_get: AtomicBool::default(),
        })
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        name::split(uri)
    }
}

impl Connect for Https {
    type Client = Client;

    fn connection(&self) -> Result<Arc<Connection<Client>>> {
        let configured = self.settings()?;
        self.0.connection.get(
            |client| Ok(Arc::ptr_eq(&client.configured, &configured)),
            |_| {
                let Configured { threads, memory_budget, .. } = *configured;
                let settings = Arc::clone(&configured.default);
                let process = Process::current("https", threads, memory_budget)?;
                let http = Http::new(HttpSettings {
                    tls: Tls { file: settings.ca_file.clone(), ..Tls::default() },
                    proxy: Proxy::Environment,
                    connect_timeout: settings.connect_timeout,
                    stall_timeout: settings.stall_timeout,
                    user_agent: concat!("tensorflow-https/", env!("CARGO_PKG_VERSION")),
                });
                let http = http.context("TF_HTTPS_CA_FILE")?;
                let credentials = Credentials::new(&settings)?;
                let agent = settings.user_agent.as_deref().map(HeaderValue::from_str).transpose();
                let user_agent =
                    agent.or_code(Code::InvalidArgument).context("TF_HTTPS_USER_AGENT")?;
                let clients = Clients::new(http, settings.local_redirects);
                let configured = Arc::clone(&configured);
                let client = Client { configured, settings, clients, credentials, user_agent };
                Ok(Connection::new(process, client))
            },
        )
    }
}

impl Https {
    /// Creates a filesystem with these settings in place of the environment's.
    pub fn with(settings: Settings) -> Self {
        let usual = Configured::default();
        let fixed = Some(Arc::new(Configured { default: Arc::new(settings), ..usual }));
        Self(Arc::new(Shared { fixed, ..Shared::default() }))
    }

    fn settings(&self) -> Result<Arc<Configured>> {
        self.0
            .fixed
            .as_ref()
            .map_or_else(|| self.0.config.settings(), |fixed| Ok(Arc::clone(fixed)))
    }

    fn open(&self, name: &Name) -> Result<File> {
        if let Some(spooled) = self.spooled(name)? {
            return self.unpacked(name, spooled);
        }
        match tf_fs_object_store::Reader::open(self, name.clone()) {
            Ok(reader) => Ok(File::Parts(reader)),
            Err(error) if is_whole(&error) => {
                Ok(File::Whole(Whole(self.receive(name, Purpose::Open)?)))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a whole file that was received recently. An older one that is still open may differ from the server's,
    /// and with other settings this process may not be allowed to read it.
    fn spooled(&self, name: &Name) -> Result<Option<Arc<Spooled>>> {
        let configured = self.settings()?;
        let all = self.0.spooled.lock()?;
        let is_good = |received: &&Received| {
            received.at.elapsed() < configured.default.cache
                && Arc::ptr_eq(&received.configured, &configured)
        };
        Ok(all.get(name).filter(is_good).and_then(|received| received.file.upgrade()))
    }

    /// Opens a file that was received for its size, and may still be compressed.
    fn unpacked(&self, name: &Name, spooled: Arc<Spooled>) -> Result<File> {
        let connection = self.connection()?;
        let (budget, settings) = (&connection.process.budget, &connection.client.settings);
        let unpacked = Arc::clone(&spooled).unpacked(budget, settings);
        let unpacked = unpacked.map_err(|failed| failed.into_error("read", name, 1))?;
        if !Arc::ptr_eq(&spooled, &unpacked) {
            let at = self.0.spooled.lock()?.get(name).map(|received| received.at);
            self.keep(&connection, name, &unpacked, at.unwrap_or_else(Instant::now))?;
        }
        Ok(File::Whole(Whole(unpacked)))
    }

    /// Receives a whole file, and keeps it for a while: a caller that requests its length opens it next, or vice versa.
    fn receive(&self, name: &Name, purpose: Purpose) -> Result<Arc<Spooled>> {
        let connection = self.connection()?;
        let Client { settings, .. } = &connection.client;
        let spooled = connection.block_on(async {
            let origin = connection.bucket(&name.bucket).await?;
            let first = std::sync::Mutex::new(origin.take_whole(&name.key));
            let (origin, budget) = (&*origin, &connection.process.budget);
            tf_fs_object_store::retry(origin, "read", name, || {
                let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                whole::receive(origin, name, first, purpose, budget, settings)
            })
            .await
        })?;
        let spooled = Arc::new(spooled);
        self.keep(&connection, name, &spooled, Instant::now())?;
        Ok(spooled)
    }

    /// Keeps a whole file that was received at this time.
    fn keep(
        &self,
        connection: &Connection<Client>,
        name: &Name,
        spooled: &Arc<Spooled>,
        at: Instant,
    ) -> Result<()> {
        let Client { settings, configured, .. } = &connection.client;
        let mut all = self.0.spooled.lock()?;
        all.retain(|_, received| received.file.strong_count() > 0);
        let (file, configured) = (Arc::downgrade(spooled), Arc::clone(configured));
        all.insert(name.clone(), Received { file, at, configured });
        let (kept, time) = (Arc::clone(spooled), settings.cache.saturating_sub(at.elapsed()));
        connection.process.spawn(async move {
            tokio::time::sleep(time).await;
            drop(kept);
        });
        Ok(())
    }
}

fn parse(uri: Uri<'_>) -> Result<Name> {
    <Client as tf_fs_object_store::Client>::parse(uri)
}

/// Returns the error of everything that would change a file.
fn read_only(uri: Uri<'_>, what: &str) -> Error {
    let name = match parse(uri) {
        Ok(name) => name,
        Err(error) => return error,
    };
    let text = format!(
        "{name}: {what}: HTTP is for reading only; write to a local path, or to a store such as s3://"
    );
    Error::new(Code::Unimplemented, text)
}

fn unlisted(uri: Uri<'_>, what: &str) -> Error {
    let name = match parse(uri) {
        Ok(name) => name,
        Err(error) => return error,
    };
    let text = format!(
        "{name}: {what}: HTTP has no directories; name each file, for instance from a list of them that you read first"
    );
    Error::new(Code::Unimplemented, text)
}

// TensorFlow compares schemes by case, URLs do not.
#[filesystem_plugin(schemes("https", "http", "HTTPS", "HTTP"))]
impl Filesystem for Https {
    type Reader = File;
    type Writer = Unsupported;
    type Region = AlignedRegion;

    // Runs at `import tensorflow`: no thread, no connection, no look at the environment yet.
    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self(Arc::clone(&SHARED)))
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        self.0.config.options()
    }

    fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        self.0.config.set(options)
    }

    fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        self.0.config.set(std::slice::from_ref(option))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<File> {
        self.open(&parse(uri)?)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Unsupported> {
        Err(read_only(uri, "write"))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Unsupported> {
        Err(read_only(uri, "append"))
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        let name = parse(uri)?;
        let file = self.open(&name)?;
        loop {
            let len = file.size();
            ensure!(
                len > 0,
                Error::invalid_argument(format_args!("{name}: an empty file has no memory region"))
            );
            let region = AlignedRegion::read(&file, len);
            // Otherwise the remembered length was out of date, and the first read found another.
            if file.size() == len {
                return region;
            }
        }
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(read_only(uri, "create a directory"))
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(read_only(uri, "create a directory"))
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        Err(read_only(uri, "delete"))
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(read_only(uri, "delete"))
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        Err(read_only(uri, "delete").into())
    }

    fn rename_file(&self, src: Uri<'_>, _dst: Uri<'_>) -> Result<()> {
        Err(read_only(src, "rename"))
    }

    fn copy_file(&self, _src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        Err(read_only(dst, "copy to it"))
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        let name = parse(uri)?;
        let connection = self.connection()?;
        match connection.path_exists(&name) {
            Err(error) if is_whole(&error) => {
                // It may never be opened, and its body keeps a connection.
                let origin = connection.block_on(connection.bucket(&name.bucket))?;
                drop(origin.take_whole(&name.key));
                Ok(true)
            }
            outcome => outcome,
        }
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        let name = parse(uri)?;
        let spooled = match self.spooled(&name)? {
            Some(spooled) => spooled,
            None => match self.connection()?.stat(&name) {
                Err(error) if is_whole(&error) => self.receive(&name, Purpose::Stat)?,
                outcome => return outcome,
            },
        };
        let statistics = FileStatistics::file(spooled.size);
        Ok(spooled.modified.map_or(statistics, |time| statistics.with_modified(time)))
    }

    // A URL is sent as it was written: `a//b`, `./a` and `a/../b` are distinct names.
    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        uri.to_vec()
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        Err(unlisted(uri, "list"))
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        if pattern.as_bytes().is_empty() {
            return Ok(Entries::new());
        }
        // `?` begins the query of a URL. Other wildcards are not valid in one.
        let (_, key) = name::split(pattern)?;
        let is_name = glob::is_literal(key.replace('?', "").as_bytes());
        ensure!(is_name, unlisted(pattern, "match a pattern"));
        let name = glob::unescape(pattern.as_bytes()).into_owned();
        let exists = self.path_exists(Uri::new(&name))?;
        Ok(exists.then_some(name).into_iter().collect())
    }

    fn flush_caches(&self) {
        self.0.connection.flush_caches();
        if let Ok(mut spooled) = self.0.spooled.lock() {
            spooled.clear();
        }
    }
}

impl File {
    /// Returns its size, in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Parts(reader) => reader.size(),
            Self::Whole(Whole(spooled)) => spooled.size,
        }
    }
}

impl RandomAccessFile for File {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        match self {
            Self::Parts(reader) => reader.read_at(offset, buf),
            Self::Whole(Whole(spooled)) => spooled.read_at(offset, buf),
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_counts_from_the_next_use_on() {
        let https = Https(Arc::default());
        let option =
            |key: &str, number| FilesystemOption::new(key, OptionValues::Int(vec![number]));
        let before = https.connection().unwrap();
        https.set_filesystem_configuration_option(&option("read_concurrency", 3)).unwrap();
        let after = https.connection().unwrap();
        assert_eq!(before.client.settings.read_concurrency, 16);
        assert_eq!(after.client.settings.read_concurrency, 3);
        assert!(Arc::ptr_eq(&after, &https.connection().unwrap()), "nothing has changed");
        let shown = https.get_filesystem_configuration_option("read_concurrency").unwrap();
        assert_eq!(shown.values, OptionValues::Int(vec![3]));
        let error = https.set_filesystem_configuration_option(&option("colour", 1)).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }
}
