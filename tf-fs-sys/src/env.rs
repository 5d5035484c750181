//! The functions of `tensorflow/c/env.h` by which a program uses files, those of plugins among them.

#[cfg(feature = "host")]
use crate::file_statistics::TF_FileStatistics;
#[cfg(feature = "host")]
use crate::status::TF_Status;
#[cfg(feature = "host")]
use core::ffi::c_char;

crate::layout::opaque! {
    /// A file that is open for writing. Opaque.
    pub struct TF_WritableFileHandle;

    /// Names, one after the other. Opaque.
    pub struct TF_StringStream;
}

#[cfg(feature = "host")]
crate::host::host_functions! {
    /// Files and directories, in `libtensorflow_cc.so.2`. Each name is a URI or a path of this machine, NUL-terminated.
    pub struct EnvFunctions {
        /// Creates a directory, whose parent exists.
        required fn TF_CreateDir(dirname: *const c_char, status: *mut TF_Status);
        /// Deletes an empty directory.
        required fn TF_DeleteDir(dirname: *const c_char, status: *mut TF_Status);
        /// Deletes a tree, and writes how many files and directories could not be deleted.
        required fn TF_DeleteRecursively(
            dirname: *const c_char,
            undeleted_file_count: *mut i64,
            undeleted_dir_count: *mut i64,
            status: *mut TF_Status,
        );
        /// Writes what a file or directory is. Only after `TF_OK` there is something to read.
        required fn TF_FileStat(
            filename: *const c_char,
            stats: *mut TF_FileStatistics,
            status: *mut TF_Status,
        );
        /// Opens a new file, or an empty one in place of another.
        required fn TF_NewWritableFile(
            filename: *const c_char,
            handle: *mut *mut TF_WritableFileHandle,
            status: *mut TF_Status,
        );
        /// Closes a file and frees the handle, also when closing fails.
        required fn TF_CloseWritableFile(handle: *mut TF_WritableFileHandle, status: *mut TF_Status);
        /// Makes durable what was appended.
        required fn TF_SyncWritableFile(handle: *mut TF_WritableFileHandle, status: *mut TF_Status);
        /// Hands on what was appended.
        required fn TF_FlushWritableFile(handle: *mut TF_WritableFileHandle, status: *mut TF_Status);
        /// Appends `length` bytes.
        required fn TF_AppendWritableFile(
            handle: *mut TF_WritableFileHandle,
            data: *const c_char,
            length: usize,
            status: *mut TF_Status,
        );
        /// Deletes a file.
        required fn TF_DeleteFile(filename: *const c_char, status: *mut TF_Status);
        /// Writes the next name, NUL-terminated and valid until the next call; false at the end.
        required fn TF_StringStreamNext(list: *mut TF_StringStream, result: *mut *const c_char) -> bool;
        /// Frees the names.
        required fn TF_StringStreamDone(list: *mut TF_StringStream);
        /// The entries of a directory, for [`TF_StringStreamDone`](Self::TF_StringStreamDone) to free. Null with
        /// another status than `TF_OK`.
        required fn TF_GetChildren(
            filename: *const c_char,
            status: *mut TF_Status,
        ) -> *mut TF_StringStream;
    }
}
