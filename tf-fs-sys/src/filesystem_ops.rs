//! The tables of operations in `tensorflow/c/experimental/filesystem/filesystem_interface.h`, its section 2. The rules in
//! [`filesystem`](crate::filesystem) hold here too.

use crate::file_statistics::TF_FileStatistics;
use crate::filesystem::{
    TF_Filesystem, TF_Filesystem_Option, TF_RandomAccessFile, TF_ReadOnlyMemoryRegion,
    TF_TransactionToken, TF_WritableFile,
};
use crate::status::TF_Status;
use core::ffi::{c_char, c_int, c_void};

/// Operations of a [`TF_RandomAccessFile`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_RandomAccessFileOps {
    /// Frees the plugin's state. Required. Never called after a failed `new_random_access_file`.
    pub cleanup: Option<unsafe extern "C" fn(file: *mut TF_RandomAccessFile)>,
    /// Reads up to `n` bytes from byte `offset` into `buffer`, which is uninitialised and may be
    /// null when `n` is 0.
    ///
    /// Returns the number of bytes read with `TF_OK` if that is `n`, with `TF_OUT_OF_RANGE` if the
    /// file ended before; -1 with another code on any other error. The host does not check the
    /// result against `n`: more than `n` makes it read past its own buffer.
    pub read: Option<
        unsafe extern "C" fn(
            file: *const TF_RandomAccessFile,
            offset: u64,
            n: usize,
            buffer: *mut c_char,
            status: *mut TF_Status,
        ) -> i64,
    >,
}

/// Operations of a [`TF_WritableFile`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_WritableFileOps {
    /// Frees the plugin's state; also called for a file that was never closed. Required.
    pub cleanup: Option<unsafe extern "C" fn(file: *mut TF_WritableFile)>,
    /// Appends `n` bytes. `n` may be 0 and `buffer` null then.
    pub append: Option<
        unsafe extern "C" fn(
            file: *const TF_WritableFile,
            buffer: *const c_char,
            n: usize,
            status: *mut TF_Status,
        ),
    >,
    /// Returns the position in bytes, -1 on error.
    pub tell:
        Option<unsafe extern "C" fn(file: *const TF_WritableFile, status: *mut TF_Status) -> i64>,
    /// Hands buffered bytes on; may return before they are durable. Also called after `close`.
    pub flush: Option<unsafe extern "C" fn(file: *const TF_WritableFile, status: *mut TF_Status)>,
    /// Returns once everything appended so far is durable. Null: the host calls `flush`.
    pub sync: Option<unsafe extern "C" fn(file: *const TF_WritableFile, status: *mut TF_Status)>,
    /// Flushes and closes. The host calls it more than once.
    pub close: Option<unsafe extern "C" fn(file: *const TF_WritableFile, status: *mut TF_Status)>,
}

/// Operations of a [`TF_ReadOnlyMemoryRegion`]; all three are required.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_ReadOnlyMemoryRegionOps {
    /// Frees the region.
    pub cleanup: Option<unsafe extern "C" fn(region: *mut TF_ReadOnlyMemoryRegion)>,
    /// The first byte; valid and constant until `cleanup`.
    pub data: Option<unsafe extern "C" fn(region: *const TF_ReadOnlyMemoryRegion) -> *const c_void>,
    /// The length in bytes.
    pub length: Option<unsafe extern "C" fn(region: *const TF_ReadOnlyMemoryRegion) -> u64>,
}

/// An operation with one path and a status.
pub type TF_PathOp = unsafe extern "C" fn(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    status: *mut TF_Status,
);

/// An operation with a source path, a destination path and a status.
pub type TF_TwoPathOp = unsafe extern "C" fn(
    filesystem: *const TF_Filesystem,
    src: *const c_char,
    dst: *const c_char,
    status: *mut TF_Status,
);

/// An operation that fills a [`TF_WritableFile`].
pub type TF_NewWritableFileOp = unsafe extern "C" fn(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    file: *mut TF_WritableFile,
    status: *mut TF_Status,
);

/// An operation that returns names: the number of entries, or -1 on error. `*entries` is null
/// on entry; the array and each string come from the plugin's allocator, and the host frees them
/// whenever the result is not negative.
pub type TF_ListOp = unsafe extern "C" fn(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    entries: *mut *mut *mut c_char,
    status: *mut TF_Status,
) -> c_int;

/// An operation that returns the transaction of a path: 0, or -1 on error.
pub type TF_TransactionForPathOp = unsafe extern "C" fn(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    token: *mut *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int;

/// Operations of a [`TF_Filesystem`]. A null operation makes the host use its own default or answer
/// `TF_UNIMPLEMENTED`; only `init` and `cleanup` are required.
///
/// Every path is first given to `translate_name`, except the pattern of `get_matching_paths`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_FilesystemOps {
    /// Makes the filesystem's state; runs inside registration. If it fails, `cleanup` is not called.
    pub init: Option<unsafe extern "C" fn(filesystem: *mut TF_Filesystem, status: *mut TF_Status)>,
    /// Frees the state. Only runs when the scheme turned out to be taken, never at process exit.
    pub cleanup: Option<unsafe extern "C" fn(filesystem: *mut TF_Filesystem)>,
    /// Opens a file for reading.
    pub new_random_access_file: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            file: *mut TF_RandomAccessFile,
            status: *mut TF_Status,
        ),
    >,
    /// Creates a file, or empties the one that exists, and opens it for appending.
    pub new_writable_file: Option<TF_NewWritableFileOp>,
    /// Opens a file for appending after its present end; creates it if it is missing.
    pub new_appendable_file: Option<TF_NewWritableFileOp>,
    /// Maps a file; `TF_INVALID_ARGUMENT` if it is empty.
    pub new_read_only_memory_region_from_file: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            region: *mut TF_ReadOnlyMemoryRegion,
            status: *mut TF_Status,
        ),
    >,
    /// Creates one directory.
    pub create_dir: Option<TF_PathOp>,
    /// Creates a directory and its missing ancestors. The host's default can loop forever.
    pub recursively_create_dir: Option<TF_PathOp>,
    /// Deletes a file.
    pub delete_file: Option<TF_PathOp>,
    /// Deletes an empty directory.
    pub delete_dir: Option<TF_PathOp>,
    /// Deletes a directory and all below it. Both counters hold garbage on entry and are read
    /// whatever the status.
    pub delete_recursively: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            undeleted_files: *mut u64,
            undeleted_dirs: *mut u64,
            status: *mut TF_Status,
        ),
    >,
    /// Renames a file, replacing the destination. Null: the host copies and deletes.
    pub rename_file: Option<TF_TwoPathOp>,
    /// Copies a file, replacing the destination. Null: the host reads and appends.
    pub copy_file: Option<TF_TwoPathOp>,
    /// `TF_OK` if the path exists, `TF_NOT_FOUND` if not.
    pub path_exists: Option<TF_PathOp>,
    /// Whether all of `num_files` paths exist, each with its status; `statuses` may be null.
    pub paths_exist: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            paths: *mut *mut c_char,
            num_files: c_int,
            statuses: *mut *mut TF_Status,
        ) -> bool,
    >,
    /// Fills `stats`, which is uninitialised on entry.
    pub stat: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            stats: *mut TF_FileStatistics,
            status: *mut TF_Status,
        ),
    >,
    /// `TF_OK` and true for a directory, `TF_FAILED_PRECONDITION` for a file. The host ignores the
    /// returned value and looks at the status only.
    pub is_directory: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            status: *mut TF_Status,
        ) -> bool,
    >,
    /// Length of a file in bytes, -1 on error.
    pub get_file_size: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            status: *mut TF_Status,
        ) -> i64,
    >,
    /// The canonical form of a URI, from the plugin's allocator. Null aborts the process. Without
    /// this operation the host's default drops scheme and host from every path.
    pub translate_name: Option<
        unsafe extern "C" fn(filesystem: *const TF_Filesystem, uri: *const c_char) -> *mut c_char,
    >,
    /// The last name component of each entry of a directory.
    pub get_children: Option<TF_ListOp>,
    /// The complete URI of each path that matches a pattern, which is passed on as the user wrote
    /// it. The host's default crashes on some patterns.
    pub get_matching_paths: Option<TF_ListOp>,
    /// Drops whatever the filesystem caches.
    pub flush_caches: Option<unsafe extern "C" fn(filesystem: *const TF_Filesystem)>,
    /// Starts a transaction: 0, or -1 on error. TensorFlow up to 2.21 calls no transaction operation.
    pub start_transaction: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            token: *mut *mut TF_TransactionToken,
            status: *mut TF_Status,
        ) -> c_int,
    >,
    /// Ends a transaction and frees its token: 0, or -1 on error.
    pub end_transaction: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            token: *mut TF_TransactionToken,
            status: *mut TF_Status,
        ) -> c_int,
    >,
    /// Makes a path, which need not exist, part of a transaction: 0, or -1 on error.
    pub add_to_transaction: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            path: *const c_char,
            token: *mut TF_TransactionToken,
            status: *mut TF_Status,
        ) -> c_int,
    >,
    /// The transaction that a path is part of.
    pub get_transaction_for_path: Option<TF_TransactionForPathOp>,
    /// The transaction that a path is part of, or a new one with the path in it.
    pub get_or_start_transaction_for_path: Option<TF_TransactionForPathOp>,
    /// A token as text for people, from the plugin's allocator; never null.
    pub decode_transaction_token: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            token: *const TF_TransactionToken,
        ) -> *mut c_char,
    >,
    /// All options with their values: `*options` becomes an array of `*num_options` elements, which
    /// the caller frees, and all that it points to, with the plugin's allocator. TensorFlow up to
    /// 2.21 calls no configuration operation but `set_filesystem_configuration`.
    pub get_filesystem_configuration: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            options: *mut *mut TF_Filesystem_Option,
            num_options: *mut c_int,
            status: *mut TF_Status,
        ),
    >,
    /// Sets several options, which remain the caller's.
    pub set_filesystem_configuration: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            options: *const TF_Filesystem_Option,
            num_options: c_int,
            status: *mut TF_Status,
        ),
    >,
    /// One option by its key; the caller frees it as above.
    pub get_filesystem_configuration_option: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            key: *const c_char,
            option: *mut *mut TF_Filesystem_Option,
            status: *mut TF_Status,
        ),
    >,
    /// Sets one option, which remains the caller's.
    pub set_filesystem_configuration_option: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            option: *const TF_Filesystem_Option,
            status: *mut TF_Status,
        ),
    >,
    /// The keys of all options. `keys` has the type of a single string, so the header leaves the
    /// representation open.
    pub get_filesystem_configuration_keys: Option<
        unsafe extern "C" fn(
            filesystem: *const TF_Filesystem,
            keys: *mut *mut c_char,
            num_keys: *mut c_int,
            status: *mut TF_Status,
        ),
    >,
}
