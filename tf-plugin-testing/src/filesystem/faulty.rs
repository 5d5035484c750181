//! A wrapper for a filesystem that fails, waits, reads less or panics on demand.

use crate::faults::{Fault, Faults, faults_of_each};
use std::sync::Arc;
use tf_fs_plugin::__private::testing::defaults;
use tf_fs_plugin::{
    DeleteRecursivelyError, Entries, FileStatistics, Filesystem, FilesystemOption, OperationTable,
    Operations, RandomAccessFile, ReadBuf, Uri, WritableFile,
};
use tf_plugin_core::{Error, Result};

const FILE_OPERATIONS: [&str; 6] = ["read", "append", "tell", "flush", "sync", "close"];

/// A filesystem that behaves like `F`, until [`Faults`] change that. For tests of what happens when
/// a disk is full or a server does not respond.
///
/// TensorFlow sees the same table as of `F`: what is null there is null here. Where `F` uses the
/// SDK's default, the default runs on this filesystem, so the calls that it makes can meet faults,
/// too. Files that this filesystem opens are `Faulty` as well.
///
/// ```
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/filesystem/toy.rs")); }
/// # use toy::Toy as MemFs;
/// use tf_fs_plugin::Code;
/// use tf_plugin_testing::filesystem::{Fault, Faulty, Host};
///
/// let (faulty, faults) = Faulty::new(MemFs::default());
/// let host = Host::new();
/// host.serve("mem", faulty)?;
///
/// faults.at("stat", 1, Fault::Fail(Code::Unavailable));
/// assert!(host.stat("mem://box/a").is_ok());
/// assert_eq!(host.stat("mem://box/a").unwrap_err().code(), Code::Unavailable);
/// assert!(host.stat("mem://box/a").is_ok());
/// # Ok::<(), tf_fs_plugin::Error>(())
/// ```
#[derive(Debug)]
pub struct Faulty<T> {
    inner: T,
    faults: Faults,
}

impl<F: Filesystem> Faulty<F> {
    /// Wraps a filesystem for [`Host::serve`](super::host::Host::serve). No fault is set yet.
    #[must_use]
    pub fn new(inner: F) -> (Self, Faults) {
        let own = Operations::NAMES.iter().map(|(name, _)| *name).chain(FILE_OPERATIONS);
        let faults = Faults::of(own, "filesystem_interface.h");
        (Self { inner, faults: faults.clone() }, faults)
    }

    /// Opens a file with the same faults. The call may itself meet a fault of `operation`.
    fn wrap<T>(
        &self,
        operation: &'static str,
        open: impl FnOnce() -> Result<T>,
    ) -> Result<Faulty<T>> {
        let inner = self.faults.call(operation, open)?;
        Ok(Faulty { inner, faults: self.faults.clone() })
    }
}

impl<F: Filesystem> OperationTable for Faulty<F> {
    const PROVIDED: Operations = F::PROVIDED;
}

/// Defines operations that call the inner one, some on `&mut self`.
macro_rules! forward {
    ($($([$mut:ident])? $op:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $op(&$($mut)? self, $($arg: $type),*) -> Result<$answer> {
            self.faults.call(stringify!($op), || self.inner.$op($($arg),*))
        }
    )*};
}

/// Does the same for operations with a default: the default calls the operations of this filesystem.
macro_rules! forward_or_default {
    ($($op:ident, $flag:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $op(&self, $($arg: $type),*) -> Result<$answer> {
            self.faults.call(stringify!($op), || {
                if F::PROVIDED.contains(Operations::$flag) {
                    self.inner.$op($($arg),*)
                } else {
                    defaults::$op(self, $($arg),*)
                }
            })
        }
    )*};
}

impl<F: Filesystem> Filesystem for Faulty<F> {
    type Reader = Faulty<F::Reader>;
    type Writer = Faulty<F::Writer>;
    type Region = F::Region;
    type Transaction = F::Transaction;

    fn new(scheme: &str) -> Result<Self> {
        F::new(scheme).map(|inner| Self::new(inner).0)
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        self.wrap("new_random_access_file", || self.inner.new_random_access_file(uri))
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.wrap("new_writable_file", || self.inner.new_writable_file(uri))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        self.wrap("new_appendable_file", || self.inner.new_appendable_file(uri))
    }

    forward! {
        new_read_only_memory_region_from_file(uri: Uri<'_>) -> F::Region;
        create_dir(uri: Uri<'_>) -> ();
        delete_file(uri: Uri<'_>) -> ();
        delete_dir(uri: Uri<'_>) -> ();
        stat(uri: Uri<'_>) -> FileStatistics;
        get_file_size(uri: Uri<'_>) -> u64;
        get_children(uri: Uri<'_>) -> Entries;
        start_transaction() -> Arc<F::Transaction>;
        end_transaction(transaction: Arc<F::Transaction>) -> ();
        add_to_transaction(uri: Uri<'_>, transaction: &Arc<F::Transaction>) -> ();
        get_transaction_for_path(uri: Uri<'_>) -> Option<Arc<F::Transaction>>;
        get_or_start_transaction_for_path(uri: Uri<'_>) -> Arc<F::Transaction>;
        get_filesystem_configuration() -> Vec<FilesystemOption>;
        set_filesystem_configuration(options: &[FilesystemOption]) -> ();
        get_filesystem_configuration_option(key: &str) -> FilesystemOption;
        set_filesystem_configuration_option(option: &FilesystemOption) -> ();
        get_filesystem_configuration_keys() -> Vec<String>;
    }

    forward_or_default! {
        recursively_create_dir, RECURSIVELY_CREATE_DIR(uri: Uri<'_>) -> ();
        rename_file, RENAME_FILE(src: Uri<'_>, dst: Uri<'_>) -> ();
        copy_file, COPY_FILE(src: Uri<'_>, dst: Uri<'_>) -> ();
        path_exists, PATH_EXISTS(uri: Uri<'_>) -> bool;
        get_matching_paths, GET_MATCHING_PATHS(pattern: Uri<'_>) -> Entries;
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        self.faults.call("is_directory", || {
            if F::PROVIDED.contains(Operations::IS_DIRECTORY) {
                self.inner.is_directory(uri)
            } else {
                self.stat(uri).map(|found| found.is_directory)
            }
        })
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        let mut left = None;
        let deleted = self.faults.call("delete_recursively", || {
            self.inner.delete_recursively(uri).map_err(|undeleted| {
                left = Some((undeleted.files, undeleted.dirs));
                undeleted.error
            })
        });
        deleted.map_err(|error| match left {
            Some((files, dirs)) => DeleteRecursivelyError { error, files, dirs },
            None => error.into(),
        })
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        match self.faults.call("paths_exist", || Ok(self.inner.paths_exist(uris))) {
            Ok(answers) => answers,
            Err(error) => {
                let again = || Error::new(error.code(), error.message().to_owned());
                uris.iter().map(|_| Err(again())).collect()
            }
        }
    }

    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        self.inner.translate_name(uri)
    }

    fn flush_caches(&self) {
        self.inner.flush_caches();
    }

    fn decode_transaction_token(&self, transaction: &Arc<F::Transaction>) -> String {
        self.inner.decode_transaction_token(transaction)
    }
}

impl<T: RandomAccessFile> RandomAccessFile for Faulty<T> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        match self.faults.next("read") {
            Some(Fault::Shorten(n)) => {
                let n = n.clamp(1, buf.remaining().max(1)).min(buf.remaining());
                buf.fill_parts(&[n], |parts| self.inner.read_at(offset, &mut parts[0]))?
            }
            fault => Faults::meet(fault, "read", || self.inner.read_at(offset, buf)),
        }
    }
}

impl<T: WritableFile> WritableFile for Faulty<T> {
    forward! {
        [mut] append(data: &[u8]) -> ();
        [mut] tell() -> u64;
        [mut] flush() -> ();
        [mut] sync() -> ();
        [mut] close() -> ();
    }
}

/// Runs `scenario` once without a fault, and then once for each call that it made, which meets
/// `fault`. Each run has a new filesystem, created by `make`, on a new host, under `scheme`.
/// Returns how many runs there were.
///
/// `scenario` gets the host, and whether a fault will happen (`false` in the first run). It panics
/// if something is lost that must not be, or if an error is not reported.
///
/// ```
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/filesystem/toy.rs")); }
/// # use toy::Toy as MemFs;
/// use tf_fs_plugin::Code;
/// use tf_plugin_testing::filesystem::{Fault, sweep};
///
/// let runs = sweep("mem", MemFs::default, Fault::Fail(Code::Unavailable), |host, fails| {
///     let both = host.stat("mem://box/a").and(host.stat("mem://box/b"));
///     assert_eq!(both.is_err(), fails);
/// });
/// assert_eq!(runs, 3);
/// ```
///
/// # Panics
/// Panics if the scenario does, if it makes no call, if a run does not reach the call that is to meet the fault, if the
/// filesystem cannot be registered, or if the plugin breaks a rule of the C boundary.
#[track_caller]
pub fn sweep<F: Filesystem>(
    scheme: &str,
    make: impl Fn() -> F,
    fault: Fault,
    scenario: impl Fn(&super::host::Host, bool),
) -> u64 {
    let run = |call: Option<u64>| {
        let (faulty, faults) = Faulty::new(make());
        if let Some(call) = call {
            faults.at_call(call, fault);
        }
        let host = super::host::Host::new();
        // Repeated reads, which find unwritten bytes, would meet other faults.
        host.read_once();
        if let Err(error) = host.serve(scheme, faulty) {
            panic!("the filesystem cannot be registered: {error:#}");
        }
        scenario(&host, call.is_some());
        host.check();
        faults
    };
    faults_of_each(&[], run)
}
