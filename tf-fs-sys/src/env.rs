//! The functions of `tensorflow/c/env.h` by which a program uses files, those of plugins among them.

use crate::file_statistics::TF_FileStatistics;
use crate::layout::{Status, Text};
use core::ffi::c_char;

type FileHandle = *mut TF_WritableFileHandle;

crate::layout::opaque! {
    /// A file that is open for writing. Opaque.
    pub struct TF_WritableFileHandle;

    /// Names, one after the other. Opaque.
    pub struct TF_StringStream;
}

crate::layout::host_functions! {
    /// Files and directories, in `libtensorflow_cc.so.2`. Each name is a URI or a path of this machine, NUL-terminated.
    pub struct EnvFunctions {
        /// Creates a directory, whose parent exists.
        required fn TF_CreateDir(dirname: Text, status: Status);
        /// Deletes an empty directory.
        required fn TF_DeleteDir(dirname: Text, status: Status);
        /// Deletes a tree, and writes how many files and directories could not be deleted.
        required fn TF_DeleteRecursively(
            dirname: Text, undeleted_file_count: *mut i64, undeleted_dir_count: *mut i64, status: Status
        );
        /// Writes the statistics of a file or directory. They are only set with `TF_OK`.
        required fn TF_FileStat(filename: Text, stats: *mut TF_FileStatistics, status: Status);
        /// Creates a file, or empties the one that exists, and opens it for writing.
        required fn TF_NewWritableFile(filename: Text, handle: *mut FileHandle, status: Status);
        /// Closes a file and frees the handle, also when closing fails.
        required fn TF_CloseWritableFile(handle: FileHandle, status: Status);
        /// Makes everything that was appended durable.
        required fn TF_SyncWritableFile(handle: FileHandle, status: Status);
        /// Flushes everything that was appended.
        required fn TF_FlushWritableFile(handle: FileHandle, status: Status);
        /// Appends `length` bytes.
        required fn TF_AppendWritableFile(handle: FileHandle, data: *const c_char, length: usize, status: Status);
        /// Deletes a file.
        required fn TF_DeleteFile(filename: Text, status: Status);
        /// Writes the next name, NUL-terminated and valid until the next call; false at the end.
        required fn TF_StringStreamNext(list: *mut TF_StringStream, result: *mut *const c_char) -> bool;
        /// Frees the names.
        required fn TF_StringStreamDone(list: *mut TF_StringStream);
        /// Lists the entries of a directory, for [`TF_StringStreamDone`](Self::TF_StringStreamDone)
        /// to free. Null with another status than `TF_OK`.
        required fn TF_GetChildren(filename: Text, status: Status) -> *mut TF_StringStream;
    }
}
