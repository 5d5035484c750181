//! The trait that a plugin author implements.

use crate::defaults;
use crate::entries::Entries;
use crate::file::{RandomAccessFile, ReadOnlyMemoryRegion, WritableFile};
use crate::operations::OperationTable;
use crate::options::FilesystemOption;
use crate::statistics::FileStatistics;
use crate::uri::Uri;
use std::sync::Arc;
use tf_plugin_core::{Error, Result};

/// A filesystem, which serves the URIs of a scheme.
///
/// Methods have the names of the operations in TensorFlow's `filesystem_interface.h`. **TensorFlow
/// sees the methods that you implement**: `#[filesystem_plugin]` reads which methods the `impl`
/// contains. Any other operation is a null pointer, and TensorFlow's own default runs: it returns
/// `UNIMPLEMENTED`, unless the method names another default. Where TensorFlow's hangs, crashes or returns
/// wrong results, the SDK's default runs instead; each method says which. The default bodies below are
/// those SDK defaults, so a method may call any other, implemented or not.
///
/// You may leave out an associated type that none of your methods needs.
///
/// # What TensorFlow expects
/// Operations run on any thread, several at a time. Paths are canonical; see [`Uri`]. The codes that
/// users and TensorFlow rely on are listed with each method; any operation may also fail with
/// another code for another reason, such as [`Code::Unavailable`](crate::Code::Unavailable).
/// The methods name three conditions in short:
///
/// - *not found*, [`Error::not_found`]: the path, or a required parent, is missing;
/// - *not a directory*, [`Error::expected_directory`]: the path is a file where a directory is
///   required, or a component before the last is a file, for which every method returns it;
/// - *is a directory*, [`Error::expected_file`]: the path is a directory where a file is required.
///
/// A panic in an operation becomes [`Code::Internal`](crate::Code::Internal) with the operation, the
/// message and the source location; the process continues.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Filesystem`",
    note = "write `impl Filesystem for {Self}` with the attribute `#[filesystem]` or `#[filesystem_plugin(scheme = \"...\")]`"
)]
pub trait Filesystem: OperationTable + Sized + Send + Sync + 'static {
    /// A file open for reading; needed by `new_random_access_file`.
    type Reader: RandomAccessFile;
    /// A file open for writing; needed by `new_writable_file` and `new_appendable_file`.
    type Writer: WritableFile;
    /// A file mapped into memory; needed by `new_read_only_memory_region_from_file`. If the compiler
    /// requires it although no method needs it, the attribute on the `impl` is missing.
    type Region: ReadOnlyMemoryRegion;
    /// A transaction; needed by the transaction operations. If the compiler requires it although
    /// no method needs it, the attribute on the `impl` is missing.
    type Transaction: Send + Sync + 'static;

    /// Creates the filesystem that serves `scheme`. Registration calls it once per scheme, often
    /// during `import tensorflow`, so it must be fast: connect and look for credentials on first use.
    ///
    /// # Errors
    /// The error becomes the error of the registration, and the scheme is not registered.
    fn new(scheme: &str) -> Result<Self>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// *not found*; *is a directory*.
    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        unwritten(uri, "new_random_access_file")
    }

    /// Creates a file, or deletes the content of the one that exists, and opens it for writing. The
    /// path exists from now on, before anything is appended.
    ///
    /// # Errors
    /// *not found* if the parent is missing; *is a directory*.
    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        unwritten(uri, "new_writable_file")
    }

    /// Opens a file for appending; creates it if it is missing.
    ///
    /// # Errors
    /// *not found* if the parent is missing; *is a directory*.
    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        unwritten(uri, "new_appendable_file")
    }

    /// Maps a file into memory. The SDK returns `INVALID_ARGUMENT` for an empty region, as the
    /// header requires.
    ///
    /// # Errors
    /// *not found*; *is a directory*.
    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        unwritten(uri, "new_read_only_memory_region_from_file")
    }

    /// Creates one directory.
    ///
    /// # Errors
    /// *not found* if the parent is missing; [`Error::already_exists`] if the path is a directory or
    /// a file.
    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        unwritten(uri, "create_dir")
    }

    /// Creates a directory and its missing ancestors; does nothing if it exists.
    ///
    /// # Errors
    /// *not a directory* if the path or an ancestor is a file.
    ///
    /// Default: the SDK's, because TensorFlow's never ends when the root does not exist. It tries
    /// [`create_dir`](Self::create_dir) on the path and, while parents are missing, on its
    /// ancestors.
    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        defaults::recursively_create_dir(self, uri)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// *not found*; *is a directory*.
    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        unwritten(uri, "delete_file")
    }

    /// Deletes an empty directory.
    ///
    /// # Errors
    /// *not found*; *not a directory*; [`Error::expected_empty_directory`].
    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        unwritten(uri, "delete_dir")
    }

    /// Deletes a directory with its content, or a file.
    ///
    /// # Errors
    /// *not found*. The error also counts the entries that could not be deleted; an [`Error`] converts
    /// with `?` and means that nothing was deleted.
    ///
    /// Default: TensorFlow deletes entry by entry.
    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        Err(unimplemented(uri, "delete_recursively").into())
    }

    /// Renames a file, replacing a file at `dst`. After an error both are unchanged. Renaming a file
    /// to its own name does nothing.
    ///
    /// # Errors
    /// *not found* if `src` or the parent of `dst` is missing; *is a directory* if `src` or `dst` is
    /// one.
    ///
    /// Default: the SDK's, [`copy_file`](Self::copy_file) and then
    /// [`delete_file`](Self::delete_file) of `src`, because TensorFlow's loses the file when `src` is
    /// `dst`. Like TensorFlow's it is not atomic.
    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        defaults::rename_file(self, src, dst)
    }

    /// Copies a file, replacing a file at `dst`. After an error both are unchanged. Copying a file
    /// to its own name does nothing.
    ///
    /// # Errors
    /// *not found* if `src` or the parent of `dst` is missing; *is a directory* if `src` or `dst` is
    /// one.
    ///
    /// Default: the SDK's, which reads `src` and appends to `dst`, because TensorFlow's
    /// copies into `dst` when that is a directory and loses the file when `src` is `dst`. If it fails
    /// half-way, it deletes a new `dst`, and an existing `dst` has lost its content.
    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        defaults::copy_file(self, src, dst)
    }

    /// Returns whether a file or directory of this name exists; `false` becomes `NOT_FOUND`.
    ///
    /// # Errors
    /// *not a directory* if an ancestor is a file.
    ///
    /// Default: the SDK's, which calls [`stat`](Self::stat).
    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        defaults::path_exists(self, uri)
    }

    /// Returns for each path what [`path_exists`](Self::path_exists) returns for it, in the order of `uris`.
    ///
    /// Default: TensorFlow calls `path_exists` for one path after the other.
    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        uris.iter().map(|uri| self.path_exists(*uri)).collect()
    }

    /// Returns the length, modification time and kind of a path.
    ///
    /// # Errors
    /// *not found*.
    ///
    /// Default: TensorFlow returns `UNIMPLEMENTED`. Much of TensorFlow needs it.
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        unwritten(uri, "stat")
    }

    /// Returns whether a path is a directory; `false` becomes `FAILED_PRECONDITION`, because TensorFlow
    /// ignores the boolean that the header describes and reads only the status.
    ///
    /// # Errors
    /// *not found*.
    ///
    /// Default: TensorFlow calls `path_exists` and then `stat`.
    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        Ok(self.stat(uri)?.is_directory)
    }

    /// Returns the length of a file in bytes.
    ///
    /// # Errors
    /// *not found*; *is a directory*.
    ///
    /// Default: TensorFlow calls `stat`.
    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        let statistics = self.stat(uri)?;
        if statistics.is_directory {
            return Err(Error::expected_file(uri));
        }
        Ok(statistics.length)
    }

    /// Returns the canonical form of a name that the user wrote. TensorFlow passes the result to every
    /// other operation except `get_matching_paths`, and the SDK does not change it further. Implement
    /// it only for a filesystem in which `a//b`, `.` or `..` are distinct names, such as the keys of
    /// an object store.
    ///
    /// Default: the SDK's, because TensorFlow's drops the host. It is [`Uri::canonical`], except
    /// that the root of the empty host becomes `/`, as TensorFlow expects.
    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        defaults::translate_name(uri).into_owned()
    }

    /// Returns the names of the entries of a directory, without the directory, in any order. The SDK leaves out those
    /// that TensorFlow [cannot list](Entries::is_listable). A name with a slash is `INTERNAL`: a mistake of the plugin.
    ///
    /// # Errors
    /// *not found*; *not a directory*.
    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        unwritten(uri, "get_children")
    }

    /// Returns the complete name of each path that matches `pattern`, which is what the user wrote, not in canonical
    /// form. In a component `*` matches any run of characters, `?` one character, `[...]` one character of a list,
    /// `[^...]` one that is not in the list, and `\c` the character `c`. None of them matches a `/`. A pattern that
    /// matches nothing is not an error. [`glob`](crate::glob) implements the matching.
    ///
    /// Default: the SDK's, because TensorFlow's crashes on a wildcard in the host and
    /// swallows errors. It lists directory by directory with [`get_children`](Self::get_children)
    /// and returns the names in sorted order.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a wildcard in the host, and any error of a listing. A directory that does not exist is
    /// not an error: nothing in it matches.
    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        defaults::get_matching_paths(self, pattern)
    }

    /// Drops all caches, so that changes made elsewhere become visible.
    ///
    /// Default: nothing happens.
    fn flush_caches(&self) {}

    /// Starts a transaction. TensorFlow up to 2.21 calls none of the six transaction operations; the
    /// C ABI contains them.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if there is one already and several are not supported.
    ///
    /// Default: a null pointer, as for the other five.
    fn start_transaction(&self) -> Result<Arc<Self::Transaction>> {
        Err(Error::unimplemented("start_transaction"))
    }

    /// Ends a transaction that this filesystem started and has not ended; the SDK returns
    /// `NOT_FOUND` for any other. Its token is invalid afterwards, also after an error.
    ///
    /// # Errors
    /// Any, if the transaction could not be completed.
    fn end_transaction(&self, transaction: Arc<Self::Transaction>) -> Result<()> {
        drop(transaction);
        Err(Error::unimplemented("end_transaction"))
    }

    /// Adds a path to a transaction; the path need not exist. The SDK returns `NOT_FOUND` for an
    /// unknown transaction.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if the path is in another transaction.
    fn add_to_transaction(&self, uri: Uri<'_>, transaction: &Arc<Self::Transaction>) -> Result<()> {
        let _ = transaction;
        unwritten(uri, "add_to_transaction")
    }

    /// Returns the transaction that a path is part of. `None` becomes `NOT_FOUND`.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if the path belongs to another filesystem.
    fn get_transaction_for_path(&self, uri: Uri<'_>) -> Result<Option<Arc<Self::Transaction>>> {
        unwritten(uri, "get_transaction_for_path")
    }

    /// Returns the transaction that a path is part of, or a new one with the path in it.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if several transactions are not supported and there is another.
    ///
    /// Default, if you implement `start_transaction`, `add_to_transaction` and `get_transaction_for_path`:
    /// the SDK's, made of these three.
    fn get_or_start_transaction_for_path(&self, uri: Uri<'_>) -> Result<Arc<Self::Transaction>> {
        if let Some(transaction) = self.get_transaction_for_path(uri)? {
            return Ok(transaction);
        }
        let transaction = self.start_transaction()?;
        self.add_to_transaction(uri, &transaction)?;
        Ok(transaction)
    }

    /// Returns a transaction as text that people can read.
    ///
    /// Default, if you implement `start_transaction`, `get_transaction_for_path` or
    /// `get_or_start_transaction_for_path`: the SDK prints its address.
    fn decode_transaction_token(&self, transaction: &Arc<Self::Transaction>) -> String {
        format!("transaction {:p}", Arc::as_ptr(transaction))
    }

    /// Returns all options with their current values. TensorFlow up to 2.21 calls, from C++ code only,
    /// `set_filesystem_configuration` and none of the other four.
    ///
    /// Default: a null pointer; the default body has no options.
    ///
    /// # Errors
    /// Any.
    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        Ok(Vec::new())
    }

    /// Sets several options.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for a value of the wrong type.
    ///
    /// Default, if you implement `set_filesystem_configuration_option`: the SDK sets one option after
    /// the other.
    fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        options.iter().try_for_each(|option| self.set_filesystem_configuration_option(option))
    }

    /// Returns one option by its key.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key.
    ///
    /// Default, if you implement `get_filesystem_configuration`: the SDK looks there.
    fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        self.get_filesystem_configuration()?
            .into_iter()
            .find(|option| option.name == key)
            .ok_or_else(|| defaults::unknown_option(key))
    }

    /// Sets one option.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for a value of the wrong type.
    ///
    /// Default: a null pointer; the default body supports no key.
    fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        Err(defaults::unknown_option(&option.name))
    }

    /// Returns the keys of all options.
    ///
    /// Default, if you implement `get_filesystem_configuration`: the SDK looks there.
    ///
    /// # Errors
    /// Those of [`get_filesystem_configuration`](Self::get_filesystem_configuration).
    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        let options = self.get_filesystem_configuration()?;
        Ok(options.into_iter().map(|option| option.name).collect())
    }
}

/// The error of [`Filesystem::delete_recursively`], and the number of remaining entries.
#[derive(Debug)]
pub struct DeleteRecursivelyError {
    /// The reason why one of the entries could not be deleted.
    pub error: Error,
    /// Number of remaining files.
    pub files: u64,
    /// Number of remaining directories.
    pub dirs: u64,
}

impl<E: Into<Error>> From<E> for DeleteRecursivelyError {
    /// Converts the error of a traversal that could not start: the header requires 0 files and 1 directory.
    fn from(error: E) -> Self {
        Self { error: error.into(), files: 0, dirs: 1 }
    }
}

#[cold]
fn unimplemented(uri: Uri<'_>, op: &str) -> Error {
    Error::unimplemented(op).context(uri)
}

#[cold]
fn unwritten<T>(uri: Uri<'_>, op: &str) -> Result<T> {
    Err(unimplemented(uri, op))
}
