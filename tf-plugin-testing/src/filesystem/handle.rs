//! The operations of a registered filesystem, as TensorFlow runs them.

use super::abi::calls::{Listing, UNSET};
use super::abi::files::Open;
use super::abi::mounted::{Mounted, Tables};
use super::abi::transactions::RawToken;
use super::defaults;
use super::file::{TestRandomAccessFile, TestReadOnlyMemoryRegion, TestWritableFile, number};
use super::path;
use core::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::FileStatistics;
use tf_fs_plugin::FilesystemOption;
use tf_fs_plugin::Undeleted;
use tf_fs_sys::{TF_Filesystem, TF_TransactionToken};
use tf_plugin_core::{Code, Error, Result};

/// A registered filesystem. Its methods have the names of the operations in
/// `filesystem_interface.h`; any name may be given to any filesystem, while [`Host`](super::Host)
/// chooses the filesystem by the scheme.
///
/// A null slot gets TensorFlow's default, or `UNIMPLEMENTED` where it has none.
#[derive(Clone, Debug)]
pub struct TestFilesystem {
    pub(super) mounted: Arc<Mounted>,
}

/// A transaction of a filesystem. Ended with [`TestFilesystem::end_transaction`] only, not when it is
/// dropped.
#[derive(Clone, Debug)]
pub struct TestTransaction {
    filesystem: TestFilesystem,
    token: *mut TF_TransactionToken,
}

/// Whether both are the same token of the same filesystem.
impl PartialEq for TestTransaction {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && Arc::ptr_eq(&self.filesystem.mounted, &other.filesystem.mounted)
    }
}

impl Eq for TestTransaction {}

impl TestTransaction {
    /// What the C functions get. Valid until the transaction was ended.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_TransactionToken {
        self.token
    }

    /// The filesystem that it belongs to.
    #[must_use]
    pub fn filesystem(&self) -> &TestFilesystem {
        &self.filesystem
    }
}

/// TensorFlow's answer to a null slot without a default.
#[cold]
fn unsupported(name: &[u8], cpp_name: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("Filesystem for {} does not support {cpp_name}()", name.escape_ascii()),
    )
}

/// This host's answer to a null slot that TensorFlow never calls.
#[cold]
fn null_slot(op: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("the plugin has no `{op}`, which TensorFlow never calls"),
    )
}

/// Operations with one path that a status answers, each with its C++ name.
macro_rules! path_ops {
    ($($(#[$doc:meta])* $op:ident, $cpp_name:literal;)*) => {
        impl TestFilesystem {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
            pub fn $op(&self, uri: impl AsRef<[u8]>) -> Result<()> {
                let uri = uri.as_ref();
                let slot = self.mounted.tables.filesystem.$op;
                if slot.is_none() {
                    return Err(unsupported(uri, $cpp_name));
                }
                let path = self.translate_name(uri)?;
                self.mounted
                    .path_op(stringify!($op), slot, &path)
                    .unwrap_or(Ok(()))
            }
        )*}
    };
}
path_ops! {
    /// Creates one directory.
    create_dir, "CreateDir";
    /// Deletes a file.
    delete_file, "DeleteFile";
    /// Deletes an empty directory.
    delete_dir, "DeleteDir";
    /// Whether a path exists: OK or `NOT_FOUND`.
    path_exists, "FileExists";
}

impl TestFilesystem {
    /// The scheme, as it was registered.
    #[must_use]
    pub fn scheme(&self) -> &[u8] {
        &self.mounted.scheme
    }

    /// The host's copies of the plugin's tables, to see which slots are filled, or to call them as
    /// the host would not.
    #[must_use]
    pub fn tables(&self) -> Tables {
        self.mounted.tables
    }

    /// What the C functions of its table get. Valid as long as this value or a clone lives.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_Filesystem {
        self.mounted.as_ptr()
    }

    pub(super) fn violation(&self, op: &'static str, subject: &[u8], what: impl Into<String>) {
        self.mounted.violation(op, subject, what);
    }

    /// The name that TensorFlow passes to the other operations, except to `get_matching_paths`.
    /// TensorFlow's default drops scheme and host.
    ///
    /// # Errors
    /// `INTERNAL` if the plugin returns null, where TensorFlow aborts the process.
    pub fn translate_name(&self, uri: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let uri = uri.as_ref();
        match self.mounted.raw_translate_name(uri) {
            None => Ok(path::default_translate_name(uri)),
            Some(Some(name)) => Ok(name),
            Some(None) => {
                self.violation(
                    "translate_name",
                    uri,
                    "returned null, at which TensorFlow aborts the process",
                );
                Err(Error::internal(format_args!(
                    "TranslateName({}) returned nullptr",
                    uri.escape_ascii()
                )))
            }
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn new_random_access_file(&self, uri: impl AsRef<[u8]>) -> Result<TestRandomAccessFile> {
        let uri = uri.as_ref();
        if self.mounted.tables.filesystem.new_random_access_file.is_none() {
            return Err(unsupported(uri, "NewRandomAccessFile"));
        }
        let path = self.translate_name(uri)?;
        Open::<tf_fs_sys::TF_RandomAccessFile>::new(&self.mounted, &path)
            .unwrap_or_else(|| Err(unsupported(uri, "NewRandomAccessFile")))
            .map(TestRandomAccessFile)
    }

    /// Creates or empties a file and opens it for writing.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn new_writable_file(&self, uri: impl AsRef<[u8]>) -> Result<TestWritableFile> {
        let slot = self.mounted.tables.filesystem.new_writable_file;
        self.open_writable("new_writable_file", "NewWritableFile", slot, uri.as_ref())
    }

    /// Opens a file for writing after its end; creates it if it is missing.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn new_appendable_file(&self, uri: impl AsRef<[u8]>) -> Result<TestWritableFile> {
        let slot = self.mounted.tables.filesystem.new_appendable_file;
        self.open_writable("new_appendable_file", "NewAppendableFile", slot, uri.as_ref())
    }

    fn open_writable(
        &self,
        op: &'static str,
        cpp_name: &str,
        slot: Option<tf_fs_sys::TF_NewWritableFileOp>,
        uri: &[u8],
    ) -> Result<TestWritableFile> {
        if slot.is_none() {
            return Err(unsupported(uri, cpp_name));
        }
        let path = self.translate_name(uri)?;
        Open::<tf_fs_sys::TF_WritableFile>::new(&self.mounted, op, slot, &path)
            .unwrap_or_else(|| Err(unsupported(uri, cpp_name)))
            .map(TestWritableFile)
    }

    /// Maps a file into memory.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn new_read_only_memory_region_from_file(
        &self,
        uri: impl AsRef<[u8]>,
    ) -> Result<TestReadOnlyMemoryRegion> {
        const NAME: &str = "NewReadOnlyMemoryRegionFromFile";
        let uri = uri.as_ref();
        let ops = &self.mounted.tables.filesystem;
        if ops.new_read_only_memory_region_from_file.is_none() {
            return Err(unsupported(uri, NAME));
        }
        let path = self.translate_name(uri)?;
        Open::<tf_fs_sys::TF_ReadOnlyMemoryRegion>::new(&self.mounted, &path)
            .unwrap_or_else(|| Err(unsupported(uri, NAME)))
            .map(TestReadOnlyMemoryRegion::opened)
    }

    /// Creates a directory and its missing ancestors.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default never ends if the root does not exist; this host
    /// notes a violation and returns `INTERNAL`.
    pub fn recursively_create_dir(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.recursively_create_dir;
        if slot.is_none() {
            return defaults::recursively_create_dir(self, uri);
        }
        let path = self.translate_name(uri)?;
        self.mounted.path_op("recursively_create_dir", slot, &path).unwrap_or(Ok(()))
    }

    /// Deletes a directory with all below it.
    ///
    /// # Errors
    /// That of the plugin, with what is left.
    pub fn delete_recursively(&self, uri: impl AsRef<[u8]>) -> Result<(), Undeleted> {
        const OP: &str = "delete_recursively";
        let uri = uri.as_ref();
        if self.mounted.tables.filesystem.delete_recursively.is_none() {
            return defaults::delete_recursively(self, uri);
        }
        let path = self.translate_name(uri)?;
        let Some((result, files, dirs)) = self.mounted.raw_delete_recursively(&path) else {
            return Ok(());
        };
        if files == UNSET || dirs == UNSET {
            let what = "left a counter unset, which TensorFlow reads whatever the status";
            self.violation(OP, &path, what);
        } else if result.is_ok() && (files, dirs) != (0, 0) {
            let what = format!(
                "answered OK with {files} files and {dirs} directories left; Python raises PermissionDeniedError"
            );
            self.violation(OP, &path, what);
        }
        result.map_err(|error| Undeleted { error, files, dirs })
    }

    /// Renames a file within this filesystem.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default copies and deletes.
    pub fn rename_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let slot = self.mounted.tables.filesystem.rename_file;
        if slot.is_none() {
            self.copy_file(src, dst)?;
            return self.delete_file(src);
        }
        let (src, dst) = (self.translate_name(src)?, self.translate_name(dst)?);
        self.mounted.two_path_op("rename_file", slot, &src, &dst).unwrap_or(Ok(()))
    }

    /// Copies a file within this filesystem.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default reads and appends in pieces of 128 KiB, and copies
    /// into `dst` if that is a directory.
    pub fn copy_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let slot = self.mounted.tables.filesystem.copy_file;
        if slot.is_none() {
            return defaults::copy_file(self, src, self, dst);
        }
        let (src, dst) = (self.translate_name(src)?, self.translate_name(dst)?);
        self.mounted.two_path_op("copy_file", slot, &src, &dst).unwrap_or(Ok(()))
    }

    /// Requests many paths at once: an answer a path, in their order. TensorFlow's default requests
    /// one after the other.
    ///
    /// # Errors
    /// For each path as [`path_exists`](Self::path_exists).
    pub fn paths_exist(&self, uris: &[impl AsRef<[u8]>]) -> Result<Vec<Result<()>>> {
        match self.ask_for_paths(uris, true)? {
            Some((_, answers)) => Ok(answers),
            None => Ok(uris.iter().map(|uri| self.path_exists(uri)).collect()),
        }
    }

    /// Whether all paths exist, without a status for each: the plugin gets no statuses. TensorFlow's
    /// default stops at the first that does not.
    ///
    /// # Errors
    /// `INTERNAL` if a name cannot be translated.
    pub fn all_paths_exist(&self, uris: &[impl AsRef<[u8]>]) -> Result<bool> {
        match self.ask_for_paths(uris, false)? {
            Some((all, _)) => Ok(all),
            None => Ok(uris.iter().all(|uri| self.path_exists(uri).is_ok())),
        }
    }

    fn ask_for_paths(
        &self,
        uris: &[impl AsRef<[u8]>],
        with_statuses: bool,
    ) -> Result<Option<(bool, Vec<Result<()>>)>> {
        if self.mounted.tables.filesystem.paths_exist.is_none() {
            return Ok(None);
        }
        let paths = uris.iter().map(|uri| self.translate_name(uri)).collect::<Result<Vec<_>>>()?;
        let answer = self.mounted.raw_paths_exist(&paths, with_statuses);
        if let Some((all, answers)) = &answer
            && with_statuses
            && *all != answers.iter().all(Result::is_ok)
        {
            let what = format!("returned {all}, but the statuses say otherwise");
            self.violation("paths_exist", b"", what);
        }
        Ok(answer)
    }

    /// Length, time of modification and kind of a path.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn stat(&self, uri: impl AsRef<[u8]>) -> Result<FileStatistics> {
        let uri = uri.as_ref();
        if self.mounted.tables.filesystem.stat.is_none() {
            return Err(unsupported(uri, "Stat"));
        }
        let path = self.translate_name(uri)?;
        let Some((result, raw)) = self.mounted.raw_stat(&path) else {
            return Err(unsupported(uri, "Stat"));
        };
        let unset = (
            raw.length == UNSET as i64,
            raw.mtime_nsec == UNSET as i64,
            raw.is_directory == UNSET as u8,
        );
        let violation = |what: &str| self.violation("stat", &path, what);
        if let Err(error) = result {
            if unset != (true, true, true) {
                violation("wrote statistics although it failed");
            }
            return Err(error);
        }
        if unset.0 || unset.1 || unset.2 {
            violation("answered OK but left a field unset, which TensorFlow copies");
        } else if raw.is_directory > 1 {
            violation("`is_directory` is neither true nor false");
        } else if raw.length < 0 {
            violation("the length is negative, which TensorFlow passes on");
        }
        let distance = Duration::from_nanos(raw.mtime_nsec.unsigned_abs());
        let mut found = FileStatistics::file(u64::try_from(raw.length).unwrap_or(0));
        found.is_directory = raw.is_directory == 1;
        Ok(found.with_modified(if raw.mtime_nsec < 0 {
            SystemTime::UNIX_EPOCH - distance
        } else {
            SystemTime::UNIX_EPOCH + distance
        }))
    }

    /// Whether a path is a directory: OK, or `FAILED_PRECONDITION` for a file. TensorFlow ignores the
    /// value that the plugin returns beside the status. Its default asks `path_exists` and `stat`.
    ///
    /// # Errors
    /// That of the plugin.
    pub fn is_directory(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        let uri = uri.as_ref();
        if self.mounted.tables.filesystem.is_directory.is_none() {
            self.path_exists(uri)?;
            return if self.stat(uri)?.is_directory {
                Ok(())
            } else {
                Err(Error::failed_precondition("Not a directory"))
            };
        }
        let path = self.translate_name(uri)?;
        let Some((result, returned)) = self.mounted.raw_is_directory(&path) else {
            return Ok(());
        };
        if result.is_ok() != returned {
            let what = format!(
                "returned {returned}, but the status, which alone TensorFlow looks at, says otherwise"
            );
            self.violation("is_directory", &path, what);
        }
        result
    }

    /// Length of a file in bytes. TensorFlow's default asks `stat`.
    ///
    /// # Errors
    /// That of the plugin.
    pub fn get_file_size(&self, uri: impl AsRef<[u8]>) -> Result<u64> {
        const OP: &str = "get_file_size";
        let uri = uri.as_ref();
        if self.mounted.tables.filesystem.get_file_size.is_none() {
            let statistics = self.stat(uri)?;
            return if statistics.is_directory {
                Err(Error::failed_precondition("Called GetFileSize on a directory"))
            } else {
                Ok(statistics.length)
            };
        }
        let path = self.translate_name(uri)?;
        let Some((result, returned)) = self.mounted.raw_get_file_size(&path) else {
            return Ok(0);
        };
        let size = number(&self.mounted, OP, &path, &result, returned);
        result.map(|()| size)
    }

    /// The names of the entries of a directory.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_children(&self, uri: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        const OP: &str = "get_children";
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.get_children;
        if slot.is_none() {
            return Err(unsupported(uri, "GetChildren"));
        }
        let path = self.translate_name(uri)?;
        let Some((result, listing)) = self.mounted.raw_list(OP, slot, &path) else {
            return Ok(Vec::new());
        };
        let names = self.judge_listing(OP, &path, &result, listing);
        for name in &names {
            if name.contains(&b'/') || matches!(&name[..], b"" | b"." | b"..") {
                let what =
                    format!("\"{}\" is not the last component of a name", name.escape_ascii());
                self.violation(OP, &path, what);
            }
        }
        result.map(|()| names)
    }

    /// The names that match a pattern, which reaches the plugin as it is.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default swallows the errors of `get_children` and crashes on
    /// a wildcard in the host; there this host notes a violation and returns `INTERNAL`.
    pub fn get_matching_paths(&self, pattern: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        const OP: &str = "get_matching_paths";
        let pattern = pattern.as_ref();
        let slot = self.mounted.tables.filesystem.get_matching_paths;
        let Some((result, listing)) = self.mounted.raw_list(OP, slot, pattern) else {
            return defaults::get_matching_paths(self, pattern);
        };
        let names = self.judge_listing(OP, pattern, &result, listing);
        let scheme = path::parse(pattern).scheme;
        for name in &names {
            if name.is_empty() || path::parse(name).scheme != scheme {
                let what = format!(
                    "\"{}\" is not a complete name with the pattern's scheme",
                    name.escape_ascii()
                );
                self.violation(OP, pattern, what);
            }
        }
        result.map(|()| names)
    }

    fn judge_listing(
        &self,
        op: &'static str,
        subject: &[u8],
        result: &Result<()>,
        listing: Listing,
    ) -> Vec<Vec<u8>> {
        let count = listing.count;
        let violation = |what: String| self.violation(op, subject, what);
        if result.is_ok() && count < 0 {
            violation(format!(
                "returned {count} with OK, which TensorFlow takes for an empty list"
            ));
        }
        if result.is_err() && count != -1 {
            violation(format!("returned {count} with an error; return -1"));
        }
        if listing.no_array {
            violation(format!("returned {count} without entries; TensorFlow would crash"));
        }
        let mut names = Vec::with_capacity(listing.entries.len());
        for entry in listing.entries {
            match entry {
                Some(name) => names.push(name),
                None => violation(String::from("an entry is null; TensorFlow would crash")),
            }
        }
        let mut sorted: Vec<&Vec<u8>> = names.iter().collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if pair[0] == pair[1] {
                violation(format!("\"{}\" is in the list twice", pair[0].escape_ascii()));
            }
        }
        names
    }

    /// Drops the plugin's caches. Nothing happens if the slot is null.
    pub fn flush_caches(&self) {
        self.mounted.raw_flush_caches();
    }

    /// Starts a transaction. TensorFlow up to 2.21 calls none of the transaction operations.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn start_transaction(&self) -> Result<TestTransaction> {
        const OP: &str = "start_transaction";
        let answer = self.mounted.raw_start_transaction();
        let (result, token) = answer.ok_or_else(|| null_slot(OP))?;
        self.judge_token(OP, b"", result, token)
    }

    /// Ends a transaction; `transaction` may be of another filesystem or ended already, to see what
    /// the plugin makes of it.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn end_transaction(&self, transaction: &TestTransaction) -> Result<()> {
        const OP: &str = "end_transaction";
        let answer = self.mounted.raw_end_transaction(transaction.token);
        let (result, returned) = answer.ok_or_else(|| null_slot(OP))?;
        self.judge_zero(OP, b"", &result, returned);
        result
    }

    /// Makes a path part of a transaction.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn add_to_transaction(
        &self,
        uri: impl AsRef<[u8]>,
        transaction: &TestTransaction,
    ) -> Result<()> {
        const OP: &str = "add_to_transaction";
        let path = self.translate_name(uri)?;
        let answer = self.mounted.raw_add_to_transaction(&path, transaction.token);
        let (result, returned) = answer.ok_or_else(|| null_slot(OP))?;
        self.judge_zero(OP, &path, &result, returned);
        result
    }

    /// The transaction that a path is part of.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_transaction_for_path(&self, uri: impl AsRef<[u8]>) -> Result<TestTransaction> {
        let slot = self.mounted.tables.filesystem.get_transaction_for_path;
        self.transaction_for_path("get_transaction_for_path", slot, uri.as_ref())
    }

    /// The transaction that a path is part of, or a new one.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_or_start_transaction_for_path(
        &self,
        uri: impl AsRef<[u8]>,
    ) -> Result<TestTransaction> {
        let slot = self.mounted.tables.filesystem.get_or_start_transaction_for_path;
        self.transaction_for_path("get_or_start_transaction_for_path", slot, uri.as_ref())
    }

    fn transaction_for_path(
        &self,
        op: &'static str,
        slot: Option<tf_fs_sys::TF_TransactionForPathOp>,
        uri: &[u8],
    ) -> Result<TestTransaction> {
        let path = self.translate_name(uri)?;
        let answer = self.mounted.raw_transaction_for_path(op, slot, &path);
        let (result, token) = answer.ok_or_else(|| null_slot(op))?;
        self.judge_token(op, &path, result, token)
    }

    /// A transaction as text for people.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the slot is null, `INTERNAL` if the answer is.
    pub fn decode_transaction_token(&self, transaction: &TestTransaction) -> Result<String> {
        const OP: &str = "decode_transaction_token";
        let answer = self.mounted.raw_decode_transaction_token(transaction.token);
        match answer.ok_or_else(|| null_slot(OP))? {
            Some(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            None => {
                self.violation(OP, b"", "returned null");
                Err(Error::internal("decode_transaction_token returned null"))
            }
        }
    }

    fn judge_zero(&self, op: &'static str, subject: &[u8], result: &Result<()>, returned: c_int) {
        let expected = if result.is_ok() { 0 } else { -1 };
        if returned != expected {
            let what = format!("returned {returned} where {expected} belongs to the status");
            self.violation(op, subject, what);
        }
    }

    fn judge_token(
        &self,
        op: &'static str,
        subject: &[u8],
        result: Result<()>,
        raw: RawToken,
    ) -> Result<TestTransaction> {
        self.judge_zero(op, subject, &result, raw.returned);
        match (&result, raw.token.is_null()) {
            (Ok(()), true) => {
                self.violation(op, subject, "answered OK without a token");
                return Err(Error::internal("no token"));
            }
            (Err(_), false) => {
                self.violation(op, subject, "failed but wrote a token, which nobody ends");
            }
            _ => {}
        }
        if !raw.is_own {
            let what = "the owner of the token is not the filesystem that gave it";
            self.violation(op, subject, what);
        }
        result.map(|()| TestTransaction { filesystem: self.clone(), token: raw.token })
    }

    /// All options of the filesystem. TensorFlow never asks.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        self.mounted
            .raw_get_filesystem_configuration()
            .unwrap_or_else(|| Err(null_slot("get_filesystem_configuration")))
    }

    /// Sets several options. An empty description goes over as null, as TensorFlow's do.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        self.mounted.raw_set_filesystem_configuration(options).unwrap_or_else(|| {
            Err(Error::new(Code::Unimplemented, "Filesystem does not support SetConfiguration()"))
        })
    }

    /// One option by its key. TensorFlow never asks.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        const OP: &str = "get_filesystem_configuration_option";
        self.mounted
            .raw_get_filesystem_configuration_option(key)
            .unwrap_or_else(|| Err(null_slot(OP)))?
            .ok_or_else(|| Error::internal("the plugin answered OK without an option"))
    }

    /// Sets one option. TensorFlow never does.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        const OP: &str = "set_filesystem_configuration_option";
        self.mounted
            .raw_set_filesystem_configuration_option(option)
            .unwrap_or_else(|| Err(null_slot(OP)))
    }

    /// The keys of all options. TensorFlow never asks. The header leaves open how several keys fit
    /// into one string; this SDK puts them one after the other, each with its NUL.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        self.mounted
            .raw_get_filesystem_configuration_keys()
            .unwrap_or_else(|| Err(null_slot("get_filesystem_configuration_keys")))
    }

    /// Creates a file with this content, and closes it.
    ///
    /// # Errors
    /// The first one of opening, appending and closing.
    pub fn write_file(&self, uri: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Result<()> {
        let mut file = self.new_writable_file(uri)?;
        file.append(content.as_ref())?;
        file.close()
    }

    /// The whole content of a file, read in pieces until it ends.
    ///
    /// A file that does not end is given up: when more was read than [`get_file_size`](Self::get_file_size) says, or
    /// 256 MiB if that fails.
    ///
    /// # Errors
    /// The first one of opening and reading; `DATA_LOSS` for a file that does not end.
    pub fn read_file(&self, uri: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        /// What Python's `GFile` reads at a time.
        const CHUNK: usize = 512 << 10;
        /// Up to here nobody requests the size: what tests count are their own calls.
        const UNASKED: usize = 16 << 20;
        const MOST: u64 = 256 << 20;
        let uri = uri.as_ref();
        let file = self.new_random_access_file(uri)?;
        let mut content = Vec::new();
        let mut ask = UNASKED;
        loop {
            let piece = file.read(content.len() as u64, CHUNK)?;
            content.extend_from_slice(&piece);
            if piece.len() < CHUNK {
                return Ok(content);
            }
            if content.len() < ask {
                continue;
            }
            // Asked again each time: it may grow.
            ask *= 2;
            let size = self.get_file_size(uri);
            let read = content.len() as u64;
            if read > size.as_ref().map_or(MOST, |size| size.saturating_add(CHUNK as u64)) {
                let size = match size {
                    Ok(size) => format!("a file of {size} bytes"),
                    Err(_) => "a file of unknown size".to_owned(),
                };
                let what = format!(
                    "has given {read} bytes of {size}, and does not end: a read that reaches the end gives fewer bytes \
                     than it is requested, and OUT_OF_RANGE"
                );
                self.violation("read", uri, &what);
                return Err(Error::new(Code::DataLoss, what));
            }
        }
    }
}
