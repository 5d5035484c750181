//! The tables of operations in `tensorflow/c/experimental/filesystem/filesystem_interface.h`, its section 2. The rules in
//! [`filesystem`](crate::filesystem) hold here too.

use crate::file_statistics::TF_FileStatistics;
use crate::filesystem::{
    TF_Filesystem, TF_Filesystem_Option, TF_RandomAccessFile, TF_ReadOnlyMemoryRegion,
    TF_TransactionToken, TF_WritableFile,
};
use crate::layout::{Status, Text};
use core::ffi::{c_char, c_int, c_void};

type Fs = *const TF_Filesystem;
type Writer = *const TF_WritableFile;
type Token = *mut TF_TransactionToken;

crate::layout::records! {
    /// Operations of a [`TF_RandomAccessFile`].
    pub struct TF_RandomAccessFileOps {
        /// Frees the plugin's state. Required. Never called after a failed `new_random_access_file`.
        fn cleanup(file: *mut TF_RandomAccessFile);
        /// Reads up to `n` bytes from byte `offset` into `buffer`, which is uninitialised and may be
        /// null when `n` is 0.
        ///
        /// Returns the number of bytes read with `TF_OK` if that is `n`, with `TF_OUT_OF_RANGE` if the
        /// file ended before; -1 with another code on any other error. The host does not check the
        /// result against `n`: more than `n` makes it read past its own buffer.
        fn read(file: *const TF_RandomAccessFile, offset: u64, n: usize, buffer: *mut c_char, status: Status) -> i64;
    }

    /// Operations of a [`TF_WritableFile`].
    pub struct TF_WritableFileOps {
        /// Frees the plugin's state; also called for a file that was never closed. Required.
        fn cleanup(file: *mut TF_WritableFile);
        /// Appends `n` bytes. `n` may be 0 and `buffer` null then.
        fn append(file: Writer, buffer: *const c_char, n: usize, status: Status);
        /// Returns the position in bytes, -1 on error.
        fn tell(file: Writer, status: Status) -> i64;
        /// Flushes buffered bytes; may return before they are durable. Also called after `close`.
        fn flush(file: Writer, status: Status);
        /// Returns once everything appended so far is durable. Null: the host calls `flush`.
        fn sync(file: Writer, status: Status);
        /// Flushes and closes. The host calls it more than once.
        fn close(file: Writer, status: Status);
    }

    /// Operations of a [`TF_ReadOnlyMemoryRegion`]; all three are required.
    pub struct TF_ReadOnlyMemoryRegionOps {
        /// Frees the region.
        fn cleanup(region: *mut TF_ReadOnlyMemoryRegion);
        /// Returns the address of the first byte, which is valid and constant until `cleanup`.
        fn data(region: *const TF_ReadOnlyMemoryRegion) -> *const c_void;
        /// Returns the length in bytes.
        fn length(region: *const TF_ReadOnlyMemoryRegion) -> u64;
    }
    /// Operations of a [`TF_Filesystem`]. A null operation makes the host use its own default or
    /// return `TF_UNIMPLEMENTED`; only `init` and `cleanup` are required.
    ///
    /// Every path is first passed to `translate_name`, except the pattern of `get_matching_paths`.
    pub struct TF_FilesystemOps {
        /// Creates the filesystem's state; runs inside registration. If it fails, `cleanup` is not called.
        fn init(filesystem: *mut TF_Filesystem, status: Status);
        /// Frees the state. Only runs if the scheme is already registered, never at process exit.
        fn cleanup(filesystem: *mut TF_Filesystem);
        /// Opens a file for reading.
        fn new_random_access_file(filesystem: Fs, path: Text, file: *mut TF_RandomAccessFile, status: Status);
        /// Creates a file, or empties the one that exists, and opens it for appending.
        fn new_writable_file(filesystem: Fs, path: Text, file: *mut TF_WritableFile, status: Status);
        /// Opens a file for appending after its present end; creates it if it is missing.
        fn new_appendable_file(filesystem: Fs, path: Text, file: *mut TF_WritableFile, status: Status);
        /// Maps a file; `TF_INVALID_ARGUMENT` if it is empty.
        fn new_read_only_memory_region_from_file(
            filesystem: Fs, path: Text, region: *mut TF_ReadOnlyMemoryRegion, status: Status
        );
        /// Creates one directory.
        fn create_dir(filesystem: Fs, path: Text, status: Status);
        /// Creates a directory and its missing ancestors. The host's default can loop forever.
        fn recursively_create_dir(filesystem: Fs, path: Text, status: Status);
        /// Deletes a file.
        fn delete_file(filesystem: Fs, path: Text, status: Status);
        /// Deletes an empty directory.
        fn delete_dir(filesystem: Fs, path: Text, status: Status);
        /// Deletes a directory with its content. Both counters hold garbage on entry and are read
        /// with any status.
        fn delete_recursively(
            filesystem: Fs, path: Text, undeleted_files: *mut u64, undeleted_dirs: *mut u64, status: Status
        );
        /// Renames a file, replacing the destination. Null: the host copies and deletes.
        fn rename_file(filesystem: Fs, src: Text, dst: Text, status: Status);
        /// Copies a file, replacing the destination. Null: the host reads and appends.
        fn copy_file(filesystem: Fs, src: Text, dst: Text, status: Status);
        /// Sets `TF_OK` if the path exists, `TF_NOT_FOUND` if not.
        fn path_exists(filesystem: Fs, path: Text, status: Status);
        /// Returns whether all of `num_files` paths exist, and sets a status for each; `statuses` may be null.
        fn paths_exist(filesystem: Fs, paths: *mut *mut c_char, num_files: c_int, statuses: *mut Status) -> bool;
        /// Fills `stats`, which is uninitialised on entry.
        fn stat(filesystem: Fs, path: Text, stats: *mut TF_FileStatistics, status: Status);
        /// Sets `TF_OK` and returns true for a directory, `TF_FAILED_PRECONDITION` for a file. The
        /// host ignores the returned value and reads only the status.
        fn is_directory(filesystem: Fs, path: Text, status: Status) -> bool;
        /// Returns the length of a file in bytes, -1 on error.
        fn get_file_size(filesystem: Fs, path: Text, status: Status) -> i64;
        /// Returns the canonical form of a URI, from the plugin's allocator. Null aborts the process. Without this
        /// operation the host's default drops scheme and host from every path.
        fn translate_name(filesystem: Fs, uri: Text) -> *mut c_char;
        /// Lists the last name component of each entry of a directory. Returns their number, or -1
        /// on error. `*entries` is null on entry; the array and each string come from the plugin's
        /// allocator, and the host frees them if the result is not negative.
        fn get_children(filesystem: Fs, path: Text, entries: *mut *mut *mut c_char, status: Status) -> c_int;
        /// Lists the complete URI of each path that matches a pattern, which arrives as the user
        /// wrote it; otherwise as `get_children`. The host's default crashes on some patterns.
        fn get_matching_paths(filesystem: Fs, path: Text, entries: *mut *mut *mut c_char, status: Status) -> c_int;
        /// Drops all caches of the filesystem.
        fn flush_caches(filesystem: Fs);
        /// Starts a transaction; returns 0, or -1 on error. TensorFlow up to 2.21 calls no transaction operation.
        fn start_transaction(filesystem: Fs, token: *mut Token, status: Status) -> c_int;
        /// Ends a transaction and frees its token; returns 0, or -1 on error.
        fn end_transaction(filesystem: Fs, token: Token, status: Status) -> c_int;
        /// Makes a path, which need not exist, part of a transaction; returns 0, or -1 on error.
        fn add_to_transaction(filesystem: Fs, path: Text, token: Token, status: Status) -> c_int;
        /// Finds the transaction that a path is part of; returns 0, or -1 on error.
        fn get_transaction_for_path(filesystem: Fs, path: Text, token: *mut Token, status: Status) -> c_int;
        /// Finds the transaction that a path is part of, or starts one with it; returns 0, or -1 on error.
        fn get_or_start_transaction_for_path(filesystem: Fs, path: Text, token: *mut Token, status: Status) -> c_int;
        /// Returns a token as text that people can read, from the plugin's allocator; never null.
        fn decode_transaction_token(filesystem: Fs, token: *const TF_TransactionToken) -> *mut c_char;
        /// Lists all options with their values: `*options` becomes an array of `*num_options` elements, which the
        /// caller frees, with all that it points to, with the plugin's allocator. TensorFlow up to 2.21 calls no
        /// configuration operation except `set_filesystem_configuration`.
        fn get_filesystem_configuration(
            filesystem: Fs, options: *mut *mut TF_Filesystem_Option, num_options: *mut c_int, status: Status
        );
        /// Sets several options, which still belong to the caller.
        fn set_filesystem_configuration(
            filesystem: Fs, options: *const TF_Filesystem_Option, num_options: c_int, status: Status
        );
        /// Finds one option by its key; the caller frees it as above.
        fn get_filesystem_configuration_option(
            filesystem: Fs, key: Text, option: *mut *mut TF_Filesystem_Option, status: Status
        );
        /// Sets one option, which still belongs to the caller.
        fn set_filesystem_configuration_option(filesystem: Fs, option: *const TF_Filesystem_Option, status: Status);
        /// Lists the keys of all options. `keys` has the type of a single string, so the header
        /// leaves the representation open.
        fn get_filesystem_configuration_keys(filesystem: Fs, keys: *mut *mut c_char, num_keys: *mut c_int, status: Status);
    }
}

/// Type of `rename_file` and `copy_file`.
pub type TF_TwoPathOp = unsafe extern "C" fn(filesystem: Fs, src: Text, dst: Text, status: Status);

/// Type of `get_children` and `get_matching_paths`.
pub type TF_ListOp =
    unsafe extern "C" fn(Fs, path: Text, entries: *mut *mut *mut c_char, status: Status) -> c_int;

/// Type of `get_transaction_for_path` and `get_or_start_transaction_for_path`.
pub type TF_TransactionForPathOp =
    unsafe extern "C" fn(filesystem: Fs, path: Text, token: *mut Token, status: Status) -> c_int;
