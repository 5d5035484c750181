//! `s3://` for TensorFlow: Amazon S3 and every store that speaks its protocol.
//!
//! What a user may rely on is in `SEMANTICS.md`, how to use it in `README.md`, both beside this crate.
//!
//! What no protocol decides is in `tf-fs-object-store`: threads, memory, reading ahead, everything by name, retries.
//!
//! | Module | Job |
//! |---|---|
//! | `name` | `s3://bucket/key`, with the key exactly as written |
//! | `config` | settings: environment, settings file, TensorFlow's options |
//! | `connection` | clients, one a bucket: region, endpoint, credentials |
//! | `failure` | S3's errors as TensorFlow's codes |
//! | `metrics` | counters, and how Python reads them |
//! | `report` | what Python reads of the plugin itself |
//! | `ask` | what a store can do, for who wants to know before |
//! | `get` | one ranged GET |
//! | `write` | files open for writing: PUT, multipart upload, flush, append |
//! | `names` | the requests behind everything by name: listings, deletion, copies |
//! | `store` | S3 as the engine uses it |

#![forbid(unsafe_code)]

mod ask;
mod config;
mod connection;
mod failure;
mod get;
mod metrics;
mod name;
mod names;
mod report;
mod store;
mod write;

pub use ask::{Abilities, Ability, ask};
#[cfg(feature = "ranges")]
pub use get::{Ranges, Way};
pub use report::File;
pub use write::Writer;

use config::Config;
use connection::{Client, Connection, connect};
use std::sync::{Arc, LazyLock};
use tf_fs_object_store::{Client as _, Connect, Current, Name};
use tf_fs_plugin::prelude::*;

/// Amazon S3 and its like. All values share one client, whatever scheme they serve.
#[derive(Clone, Debug)]
pub struct S3(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    config: Config,
    /// Of this process, or of its parent until the first use after a fork.
    connection: Current<Client>,
}

/// An object open for reading, at the version that it had when it was opened.
pub type Reader = tf_fs_object_store::Reader<S3>;

static SHARED: LazyLock<Arc<Shared>> = LazyLock::new(Arc::default);

impl Connect for S3 {
    type Client = Client;

    /// The connection of this process with the settings of now, made at the first use.
    fn connection(&self) -> Result<Arc<Connection>> {
        let settings = self.0.config.settings()?;
        let is_up_to_date = |client: &Client| client.has(&settings);
        self.0.connection.get(is_up_to_date, |before| connect(settings.clone(), before))
    }
}

impl S3 {
    /// Opens an object for reading.
    fn open(&self, name: Name) -> Result<Reader> {
        if let Some(reader) = Reader::open(self, name.clone())? {
            return Ok(reader);
        }
        // Only now does it matter: one more request.
        match self.connection()?.is_directory(&name) {
            Ok(true) => Err(Error::expected_file(&name)),
            // Without permission to list this cannot be found out, and the object is missing either way.
            Err(error) if error.code() != Code::PermissionDenied => Err(error),
            _ => Err(Error::not_found(&name)),
        }
    }
}

#[filesystem_plugin(schemes("s3", "s3a", "s3n"))]
impl Filesystem for S3 {
    type Reader = File;
    type Writer = Writer;
    type Region = AlignedRegion;

    // Runs at `import tensorflow`: no thread, no connection, no look at the environment yet.
    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self(Arc::clone(&SHARED)))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<File> {
        let name = Client::file(uri)?;
        match report::content(self, &name)? {
            Some(text) => Ok(File::Report(text)),
            None => self.open(name).map(File::Object),
        }
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        Writer::create(self, Client::file(uri)?)
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        Writer::append_to(self, Client::file(uri)?)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        let file = self.open(Client::file(uri)?)?;
        loop {
            let len = file.size();
            ensure!(
                len > 0,
                Error::invalid_argument(format_args!("{uri}: an empty file has no memory region"))
            );
            let region = AlignedRegion::read(&file, len);
            // Otherwise the length was only remembered, and the first read found another.
            if file.size() == len {
                return region.context(uri);
            }
        }
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.create_dir(&Client::parse(uri)?)
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.recursively_create_dir(&Client::parse(uri)?)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.delete_file(&Client::file(uri)?)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.delete_dir(&Client::parse(uri)?)
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), Undeleted> {
        self.connection()?.delete_recursively(&Client::parse(uri)?)
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.connection()?.rename_file(&Client::parse(src)?, &Client::parse(dst)?)
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.connection()?.copy_file(&Client::parse(src)?, &Client::parse(dst)?)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        let name = Client::parse(uri)?;
        if report::content(self, &name)?.is_some() {
            return Ok(true);
        }
        self.connection()?.path_exists(&name)
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        match self.connection() {
            Ok(connection) => connection.paths_exist(uris),
            Err(error) => {
                uris.iter().map(|_| Err(Error::new(error.code(), format!("{error:#}")))).collect()
            }
        }
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        let name = Client::parse(uri)?;
        if let Some(text) = report::content(self, &name)? {
            return Ok(FileStatistics::file(text.len() as u64));
        }
        self.connection()?.stat(&name)
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        self.connection()?.is_directory(&Client::parse(uri)?)
    }

    // Keys are exact: `a//b`, `./a` and `a/../b` are names of their own. Only the list of all buckets has several
    // names, of which TensorFlow wants to see this one.
    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        match Uri::new(uri) {
            root if root.host().is_empty() && root.path().iter().all(|&byte| byte == b'/') => {
                b"/".to_vec()
            }
            _ => uri.to_vec(),
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.connection()?.get_children(&Client::parse(uri)?)
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        self.connection()?.get_matching_paths(pattern)
    }

    fn flush_caches(&self) {
        self.0.connection.flush_caches();
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
}
