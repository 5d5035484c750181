//! The host: which filesystem serves which name.

use super::abi::file::{TestRandomAccessFile, TestReadOnlyMemoryRegion, TestWritableFile};
use super::abi::mounted::Mounted;
use super::abi::transactions::TestTransaction;
use super::defaults;
use super::session::Session;
use super::test_filesystem::TestFilesystem;
use crate::abi::status;
use crate::violations::Violation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::{DeleteRecursivelyError, FileStatistics, Operations, Uri};
use tf_plugin_core::sync::{RwLock, RwLockReadGuard};
use tf_plugin_core::{Code, Error, Result};

/// The filesystems of a process, as TensorFlow keeps them. See the [module](super).
///
/// Several hosts may exist at a time; each has its own filesystems. When a host and everything that
/// is open on it are dropped, each filesystem's `cleanup` runs, and then [`check`](Self::check).
#[derive(Debug)]
pub struct Host {
    filesystems: RwLock<BTreeMap<Vec<u8>, Arc<Mounted>>>,
    pub(super) session: Arc<Session>,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Creates a host without filesystems.
    #[must_use]
    pub fn new() -> Self {
        status::install();
        Self { filesystems: RwLock::default(), session: Arc::default() }
    }

    /// Creates a host with the filesystems of one plugin.
    ///
    /// # Errors
    /// Returns the errors of [`register`](Self::register).
    pub fn load<P: Plugin>() -> Result<Self> {
        let host = Self::new();
        host.register::<P>()?;
        Ok(host)
    }

    /// Registers a plugin, as `tf.experimental.register_filesystem_plugin` does: it tries every
    /// scheme, and registers those that it can.
    ///
    /// # Errors
    /// Returns the first error of a scheme: `FAILED_PRECONDITION` or `INVALID_ARGUMENT` with
    /// TensorFlow's texts for tables that it refuses, the error of `new`, or `ALREADY_EXISTS` for a
    /// scheme that is registered already.
    pub fn register<P: Plugin>(&self) -> Result<()> {
        self.register_without::<P>(Operations::NONE)
    }

    /// Adds a filesystem whose scheme is free; otherwise drops it, which runs its `cleanup`.
    pub(super) fn mount(&self, mounted: Mounted) -> Result<()> {
        let scheme = mounted.scheme.clone();
        let mut filesystems =
            self.filesystems.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if filesystems.contains_key(&scheme) {
            let text = format!("File system for {} already registered", scheme.escape_ascii());
            return Err(Error::new(Code::AlreadyExists, text));
        }
        filesystems.insert(scheme, Arc::new(mounted));
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Vec<u8>, Arc<Mounted>>> {
        self.filesystems.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the registered schemes, sorted.
    #[must_use]
    pub fn schemes(&self) -> Vec<String> {
        self.read().keys().map(|scheme| scheme.escape_ascii().to_string()).collect()
    }

    /// Returns the filesystem that was registered for a scheme, also for one that no name can reach.
    ///
    /// # Errors
    /// Returns `UNIMPLEMENTED` if there is none.
    pub fn filesystem(&self, scheme: impl AsRef<[u8]>) -> Result<TestFilesystem> {
        let scheme = scheme.as_ref();
        match self.read().get(scheme) {
            Some(mounted) => Ok(TestFilesystem { mounted: Arc::clone(mounted) }),
            None => Err(unknown_scheme(scheme, b"")),
        }
    }

    /// Returns the filesystem that serves a name.
    ///
    /// # Errors
    /// Returns `UNIMPLEMENTED` if no plugin serves its scheme. TensorFlow's parser finds no scheme
    /// in some names, such as `my-fs://h/x`, and would use its local filesystem for them.
    pub fn filesystem_for(&self, uri: impl AsRef<[u8]>) -> Result<TestFilesystem> {
        let uri = uri.as_ref();
        let scheme = Uri::new(uri).scheme().as_bytes();
        if scheme.is_empty() {
            return Err(Error::new(
                Code::Unimplemented,
                format!(
                    "{}: TensorFlow finds no scheme in this name and would use its local filesystem, which this host does not have",
                    uri.escape_ascii()
                ),
            ));
        }
        self.filesystem(scheme).map_err(|_| unknown_scheme(scheme, uri))
    }

    /// Makes [`TestRandomAccessFile::read`] read from the plugin only once, for tests that count
    /// reads. Bytes that are claimed but were never written are not found then.
    pub fn read_once(&self) {
        self.session.read_once.store(true, Ordering::Relaxed);
    }

    /// Panics with a list of the violations so far, if there are any. The same happens when the
    /// host and everything that is open on it are dropped.
    #[track_caller]
    pub fn check(&self) {
        self.session.log.check();
    }

    /// Returns the violations so far and removes them, so that they do not panic: for tests of
    /// plugins that are broken on purpose.
    #[must_use]
    pub fn take_violations(&self) -> Vec<Violation> {
        self.session.log.take()
    }

    /// Returns how many statuses are alive in this process, of all hosts: one for each running
    /// call, and those that plugins made with `TF_NewStatus` and did not delete.
    #[must_use]
    pub fn live_statuses() -> usize {
        status::live()
    }

    /// Renames a file.
    ///
    /// # Errors
    /// Returns the errors of [`TestFilesystem::rename_file`]; `UNIMPLEMENTED` from one filesystem to another.
    pub fn rename_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let (src_fs, dst_fs) = (self.filesystem_for(src)?, self.filesystem_for(dst)?);
        if !Arc::ptr_eq(&src_fs.mounted, &dst_fs.mounted) {
            let text = format!(
                "Renaming {} to {} not implemented",
                src.escape_ascii(),
                dst.escape_ascii()
            );
            return Err(Error::new(Code::Unimplemented, text));
        }
        src_fs.rename_file(src, dst)
    }

    /// Copies a file as [`TestFilesystem::copy_file`] does; to another filesystem by reading and appending.
    pub fn copy_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let (src_fs, dst_fs) = (self.filesystem_for(src)?, self.filesystem_for(dst)?);
        if Arc::ptr_eq(&src_fs.mounted, &dst_fs.mounted) {
            src_fs.copy_file(src, dst)
        } else {
            defaults::copy_file(&src_fs, src, &dst_fs, dst)
        }
    }

    /// Checks many paths as [`TestFilesystem::paths_exist`] does. Each filesystem gets one call.
    pub fn paths_exist(&self, uris: &[impl AsRef<[u8]>]) -> Result<Vec<Result<()>>> {
        let mut of_scheme: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (index, uri) in uris.iter().enumerate() {
            let scheme = Uri::new(uri.as_ref()).scheme().as_bytes();
            of_scheme.entry(scheme).or_default().push(index);
        }
        let mut answers: Vec<Result<()>> = uris.iter().map(|_| Ok(())).collect();
        for indices in of_scheme.into_values() {
            let names: Vec<&[u8]> = indices.iter().map(|&index| uris[index].as_ref()).collect();
            let Some(first) = names.first() else { continue };
            let found = self.filesystem_for(first)?.paths_exist(&names)?;
            for (index, answer) in indices.into_iter().zip(found) {
                answers[index] = answer;
            }
        }
        Ok(answers)
    }

    /// Drops the caches of all filesystems.
    pub fn flush_caches(&self) {
        let all: Vec<_> = self.read().values().cloned().collect();
        for mounted in all {
            TestFilesystem { mounted }.flush_caches();
        }
    }

    /// Ends a transaction as [`TestFilesystem::end_transaction`] does.
    pub fn end_transaction(&self, transaction: &TestTransaction) -> Result<()> {
        transaction.filesystem().end_transaction(transaction)
    }

    /// Returns a transaction as text, as [`TestFilesystem::decode_transaction_token`] does.
    pub fn decode_transaction_token(&self, transaction: &TestTransaction) -> Result<String> {
        transaction.filesystem().decode_transaction_token(transaction)
    }
}

#[cold]
fn unknown_scheme(scheme: &[u8], uri: &[u8]) -> Error {
    Error::new(
        Code::Unimplemented,
        format!(
            "File system scheme '{}' not implemented (file: '{}')",
            scheme.escape_ascii(),
            uri.escape_ascii()
        ),
    )
}

/// Defines operations that are passed to the filesystem that serves the name.
macro_rules! routed {
    ($($op:ident($uri:ident $(, $arg:ident: $type:ty)*) -> $answer:ty;)*) => {
        impl Host {$(
            #[doc = concat!("Calls [`TestFilesystem::", stringify!($op), "`] of the filesystem that serves the name.")]
            ///
            /// # Errors
            /// Returns the error of the operation; `UNIMPLEMENTED` if no plugin serves the scheme.
            pub fn $op(&self, $uri: impl AsRef<[u8]> $(, $arg: $type)*) -> $answer {
                self.filesystem_for(&$uri)?.$op($uri $(, $arg)*)
            }
        )*}
    };
}
routed! {
    new_random_access_file(uri) -> Result<TestRandomAccessFile>;
    new_writable_file(uri) -> Result<TestWritableFile>;
    new_appendable_file(uri) -> Result<TestWritableFile>;
    new_read_only_memory_region_from_file(uri) -> Result<TestReadOnlyMemoryRegion>;
    create_dir(uri) -> Result<()>;
    recursively_create_dir(uri) -> Result<()>;
    delete_file(uri) -> Result<()>;
    delete_dir(uri) -> Result<()>;
    delete_recursively(uri) -> Result<(), DeleteRecursivelyError>;
    path_exists(uri) -> Result<()>;
    stat(uri) -> Result<FileStatistics>;
    is_directory(uri) -> Result<()>;
    get_file_size(uri) -> Result<u64>;
    translate_name(uri) -> Result<Vec<u8>>;
    get_children(uri) -> Result<Vec<Vec<u8>>>;
    get_matching_paths(pattern) -> Result<Vec<Vec<u8>>>;
    add_to_transaction(uri, transaction: &TestTransaction) -> Result<()>;
    get_transaction_for_path(uri) -> Result<TestTransaction>;
    get_or_start_transaction_for_path(uri) -> Result<TestTransaction>;
    write_file(uri, content: impl AsRef<[u8]>) -> Result<()>;
    read_file(uri) -> Result<Vec<u8>>;
}
