//! `local://`: the files of this machine, as the reference for a complete filesystem plugin.
//!
//! Every operation that TensorFlow's C interface has is here, and every condition gets the code that the interface
//! names for it. `local:///a/b` is the file `/a/b` or, if a root directory is configured, `a/b` below that root. Then
//! no path leaves the root, neither by `..` nor by a symbolic link.
//!
//! Each module does one job: `names` turns names into paths, `root` opens them, the others
//! are the operations.

#![forbid(unsafe_code)]

mod copy;
mod create_dir;
mod delete;
mod error;
mod fsync;
mod glob;
mod list;
mod name;
mod reader;
mod rename;
mod root;
mod settings;
mod stat;
mod transaction;
mod writer;

pub use reader::Reader;
pub use settings::ROOT_VARIABLE;
pub use transaction::Transaction;
pub use writer::Writer;

use name::LocalPath;
use root::{Access, Root, is_directory};
use settings::Config;
use std::path::Path;
use std::sync::Arc;
use tf_fs_plugin::{MappedRegion, prelude::*};
use transaction::Transactions;

/// The files of this machine, or those below a root directory.
#[derive(Debug)]
pub struct LocalFs {
    scheme: String,
    config: Config,
    transactions: Transactions,
}

impl LocalFs {
    /// Creates a filesystem whose `local:///` is `root`, an absolute path, which nothing leaves.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a relative path, `NOT_FOUND`, `FAILED_PRECONDITION` for a file.
    pub fn confined(root: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::with("local", Config::confined(root.as_ref())?))
    }

    /// Creates a filesystem whose `local:///` is `/`.
    #[must_use]
    pub fn unconfined() -> Self {
        Self::with("local", Config::new(Root::Machine, false))
    }

    fn with(scheme: &str, config: Config) -> Self {
        Self { scheme: scheme.to_owned(), config, transactions: Transactions::default() }
    }

    /// Runs an operation on the place that `uri` names.
    fn at<T>(&self, uri: Uri<'_>, op: impl FnOnce(&LocalPath<'_>) -> Result<T>) -> Result<T> {
        op(&LocalPath::new(&self.config.settings().root, uri)?)
    }

    /// Runs an operation from one place to another.
    fn between(
        &self,
        src: Uri<'_>,
        dst: Uri<'_>,
        op: impl FnOnce(&LocalPath<'_>, &LocalPath<'_>) -> Result<()>,
    ) -> Result<()> {
        let settings = self.config.settings();
        op(&LocalPath::new(&settings.root, src)?, &LocalPath::new(&settings.root, dst)?)
    }

    fn open_writer(&self, uri: Uri<'_>, access: Access) -> Result<Writer> {
        let settings = self.config.settings();
        let place = LocalPath::new(&settings.root, uri)?;
        let capacity = settings.write_buffer_bytes;
        Writer::open(&settings.root, &place, access, capacity, settings.sync_on_close)
    }

    /// Returns whether a path belongs to this filesystem, for the transaction operations.
    fn is_own(&self, uri: Uri<'_>) -> bool {
        uri.scheme().is_empty() || uri.scheme() == self.scheme
    }

    #[cold]
    fn foreign(&self, uri: Uri<'_>) -> Error {
        Error::failed_precondition(format_args!(
            "{uri}: not of this filesystem, `{}://`",
            self.scheme
        ))
    }
}

#[filesystem_plugin(scheme = "local")]
impl Filesystem for LocalFs {
    type Reader = Reader;
    type Writer = Writer;
    type Region = MappedRegion;
    type Transaction = Transaction;

    fn new(scheme: &str) -> Result<Self> {
        Ok(Self::with(scheme, Config::from_environment()?))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Reader> {
        self.at(uri, Reader::open)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        self.open_writer(uri, Access::Write)
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        self.open_writer(uri, Access::Append)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<MappedRegion> {
        self.at(uri, |place| {
            MappedRegion::new(&reader::open_file(place)?).map_err(|error| error.context(uri))
        })
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.at(uri, create_dir::create_dir)
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.at(uri, create_dir::recursively_create_dir)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.at(uri, delete::delete_file)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.at(uri, delete::delete_dir)
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        let settings = self.config.settings();
        delete::delete_recursively(&LocalPath::new(&settings.root, uri)?)
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.between(src, dst, rename::rename_file)
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.between(src, dst, copy::copy_file)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        self.at(uri, stat::path_exists)
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        uris.iter().map(|uri| self.path_exists(*uri)).collect()
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        self.at(uri, stat::stat)
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        self.at(uri, |place| Ok(is_directory(&place.metadata()?)))
    }

    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        self.at(uri, stat::get_file_size)
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.at(uri, list::get_children)
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        glob::get_matching_paths(&self.config.settings().root, pattern)
    }

    // Nothing is cached here; the kernel's caches are coherent.
    fn flush_caches(&self) {}

    fn start_transaction(&self) -> Result<Arc<Transaction>> {
        Ok(self.transactions.start())
    }

    fn end_transaction(&self, transaction: Arc<Transaction>) -> Result<()> {
        self.transactions.end(&transaction)
    }

    fn add_to_transaction(&self, uri: Uri<'_>, transaction: &Arc<Transaction>) -> Result<()> {
        if !self.is_own(uri) {
            return Err(self.foreign(uri));
        }
        let settings = self.config.settings();
        self.transactions.add(&settings.root, &LocalPath::new(&settings.root, uri)?, transaction)
    }

    fn get_transaction_for_path(&self, uri: Uri<'_>) -> Result<Option<Arc<Transaction>>> {
        if !self.is_own(uri) {
            return Err(self.foreign(uri));
        }
        self.at(uri, |place| Ok(self.transactions.find(place)))
    }

    fn get_or_start_transaction_for_path(&self, uri: Uri<'_>) -> Result<Arc<Transaction>> {
        if !self.is_own(uri) {
            return Err(self.foreign(uri).with_code(Code::NotFound));
        }
        let settings = self.config.settings();
        self.transactions.find_or_start(&settings.root, &LocalPath::new(&settings.root, uri)?)
    }

    fn decode_transaction_token(&self, transaction: &Arc<Transaction>) -> String {
        transaction.to_string()
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        Ok(self.config.options())
    }

    fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        self.config.set(options)
    }

    fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        self.config.get(key)
    }

    fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        self.config.set(std::slice::from_ref(option))
    }

    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        Ok(Config::keys())
    }
}
