//! The operations on paths.

use super::file::number;
use super::mounted::c_path;
use crate::abi::status::Status;
use crate::filesystem::defaults;
use crate::filesystem::test_filesystem::{TestFilesystem, unsupported};
use core::ffi::{c_char, c_int};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::ffi::CString;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::{DeleteRecursivelyError, FileStatistics};
use tf_fs_sys::{TF_FileStatistics, TF_Filesystem, TF_Status, TF_TwoPathOp};
use tf_plugin_core::{Error, Result, ensure};

/// The initial value of memory that a plugin has to fill.
const UNSET: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// A slot with one path and a status.
type PathOp<R> = unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut TF_Status) -> R;

/// Defines operations with one path and a status, each with its C++ name.
macro_rules! path_ops {
    ($($(#[$doc:meta])* $op:ident, $cpp_name:literal;)*) => {
        impl TestFilesystem {$(
            $(#[$doc])*
            pub fn $op(&self, uri: impl AsRef<[u8]>) -> Result<()> {
                let uri = uri.as_ref();
                let slot = self.mounted.tables.filesystem.$op;
                let slot = slot.ok_or_else(|| unsupported(uri, $cpp_name))?;
                self.path_op(stringify!($op), slot, &self.translate_name(uri)?).0
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
    /// Returns OK if a path exists, else `NOT_FOUND`.
    path_exists, "FileExists";
}

impl TestFilesystem {
    /// Returns the name that TensorFlow passes to the other operations, except to
    /// `get_matching_paths`. TensorFlow's default removes scheme and host.
    ///
    /// # Errors
    /// Returns `INTERNAL` if the plugin returns null, where TensorFlow aborts the process.
    pub fn translate_name(&self, uri: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        const OP: &str = "translate_name";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.translate_name else {
            return Ok(defaults::translate_name(uri));
        };
        let c = c_path(uri);
        // SAFETY: an initialised filesystem of this table and a C string; what it returns is null or
        // a C string from the plugin's allocator, which is the host's to free.
        let name =
            unsafe { self.mounted.blocks.take_string(OP, uri, slot(self.as_ptr(), c.as_ptr())) };
        name.ok_or_else(|| {
            self.violation(OP, uri, "returned null, at which TensorFlow aborts the process");
            let uri = uri.escape_ascii();
            Error::internal(format_args!("TranslateName({uri}) returned nullptr"))
        })
    }

    /// Calls an operation with one path and a status. Returns the result in the status, and what the slot returned.
    fn path_op<R>(&self, op: &'static str, slot: PathOp<R>, path: &[u8]) -> (Result<()>, R) {
        let c = c_path(path);
        // SAFETY: an initialised filesystem of this table, a C string and a status.
        self.mounted.call(op, path, |status| unsafe { slot(self.as_ptr(), c.as_ptr(), status) })
    }

    /// Calls an operation with two paths, which it translates.
    fn two_path_op(
        &self,
        op: &'static str,
        slot: TF_TwoPathOp,
        src: &[u8],
        dst: &[u8],
    ) -> Result<()> {
        let (src, dst) = (self.translate_name(src)?, self.translate_name(dst)?);
        let (c_src, c_dst) = (c_path(&src), c_path(&dst));
        // SAFETY: an initialised filesystem of this table, two C strings and a status.
        let call = |status| unsafe { slot(self.as_ptr(), c_src.as_ptr(), c_dst.as_ptr(), status) };
        self.mounted.call(op, &src, call).0
    }

    /// Creates a directory and its missing ancestors.
    ///
    /// # Errors
    /// Returns the plugin's error. TensorFlow's default never ends if the root does not exist; this
    /// host notes a violation and returns `INTERNAL`.
    pub fn recursively_create_dir(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.recursively_create_dir else {
            return defaults::recursively_create_dir(self, uri);
        };
        self.path_op("recursively_create_dir", slot, &self.translate_name(uri)?).0
    }

    /// Deletes a directory and everything below it.
    ///
    /// # Errors
    /// Returns the plugin's error, with how much is left.
    pub fn delete_recursively(&self, uri: impl AsRef<[u8]>) -> Result<(), DeleteRecursivelyError> {
        const OP: &str = "delete_recursively";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.delete_recursively else {
            return defaults::delete_recursively(self, uri);
        };
        let path = self.translate_name(uri)?;
        let c = c_path(&path);
        let (mut files, mut dirs) = (UNSET, UNSET);
        // SAFETY: an initialised filesystem of this table, a C string, two counters and a status.
        let (result, ()) = self.mounted.call(OP, &path, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), &mut files, &mut dirs, status);
        });
        if files == UNSET || dirs == UNSET {
            let what = "left a counter unset, which TensorFlow reads whatever the status";
            self.violation(OP, &path, what);
        } else if result.is_ok() && (files, dirs) != (0, 0) {
            let what = format!(
                "answered OK with {files} files and {dirs} directories left; Python raises PermissionDeniedError"
            );
            self.violation(OP, &path, what);
        }
        result.map_err(|error| DeleteRecursivelyError { error, files, dirs })
    }

    /// Renames a file within this filesystem.
    ///
    /// # Errors
    /// Returns the plugin's error. TensorFlow's default copies and deletes.
    pub fn rename_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let Some(slot) = self.mounted.tables.filesystem.rename_file else {
            self.copy_file(src, dst)?;
            return self.delete_file(src);
        };
        self.two_path_op("rename_file", slot, src, dst)
    }

    /// Copies a file within this filesystem.
    ///
    /// # Errors
    /// Returns the plugin's error. TensorFlow's default reads and appends in pieces of 128 KiB, and
    /// copies into `dst` if that is a directory.
    pub fn copy_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let Some(slot) = self.mounted.tables.filesystem.copy_file else {
            return defaults::copy_file(self, src, self, dst);
        };
        self.two_path_op("copy_file", slot, src, dst)
    }

    /// Checks in one call whether many paths exist. Returns a result for each, in their order.
    /// TensorFlow's default calls `path_exists` for one after the other.
    ///
    /// # Errors
    /// Each path has the errors of [`path_exists`](Self::path_exists).
    pub fn paths_exist(&self, uris: &[impl AsRef<[u8]>]) -> Result<Vec<Result<()>>> {
        match self.ask_for_paths(uris, true)? {
            Some((_, answers)) => Ok(answers),
            None => Ok(uris.iter().map(|uri| self.path_exists(uri)).collect()),
        }
    }

    /// Returns whether all paths exist. The plugin gets no statuses to say which do. TensorFlow's
    /// default stops at the first path that does not exist.
    ///
    /// # Errors
    /// Returns `INTERNAL` if a name cannot be translated.
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
        const OP: &str = "paths_exist";
        let Some(slot) = self.mounted.tables.filesystem.paths_exist else { return Ok(None) };
        let paths = uris.iter().map(|uri| self.translate_name(uri)).collect::<Result<Vec<_>>>()?;
        let strings: Vec<CString> = paths.iter().map(|path| c_path(path)).collect();
        let mut pointers: Vec<*mut c_char> =
            strings.iter().map(|string| string.as_ptr().cast_mut()).collect();
        let status = |path: &Vec<u8>| Status::new(&self.mounted.session.log, OP, path);
        let statuses: Vec<Status> = paths.iter().filter(|_| with_statuses).map(status).collect();
        let mut raw: Vec<_> = statuses.iter().map(Status::as_ptr).collect();
        let raw = if with_statuses { raw.as_mut_ptr() } else { ptr::null_mut() };
        let count = c_int::try_from(paths.len()).map_err(Error::invalid_argument)?;
        // SAFETY: an initialised filesystem of this table, `count` C strings, which the slot does not
        // write, and null or as many statuses.
        let all = unsafe { slot(self.as_ptr(), pointers.as_mut_ptr(), count, raw) };
        let answers: Vec<_> = statuses.iter().map(Status::result).collect();
        if with_statuses && all != answers.iter().all(Result::is_ok) {
            let what = format!("returned {all}, but the statuses say otherwise");
            self.violation(OP, b"", what);
        }
        Ok(Some((all, answers)))
    }

    /// Returns length, time of modification and kind of a path.
    pub fn stat(&self, uri: impl AsRef<[u8]>) -> Result<FileStatistics> {
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.stat;
        let slot = slot.ok_or_else(|| unsupported(uri, "Stat"))?;
        let path = self.translate_name(uri)?;
        let c = c_path(&path);
        let mut place = MaybeUninit::<TF_FileStatistics>::uninit();
        // SAFETY: every byte of the struct is within `place`; any byte is a `u8`, which `is_directory`, a C++ `bool`, is
        // read as, and afterwards each field has at least the bytes that were put there first. The slot gets an
        // initialised filesystem of this table, a C string, a struct to fill and a status.
        let (result, length, mtime_nsec, is_directory) = unsafe {
            let bytes = place.as_mut_ptr().cast::<u8>();
            bytes.write_bytes(UNSET as u8, size_of::<TF_FileStatistics>());
            let (result, ()) = self.mounted.call("stat", &path, |status| {
                slot(self.as_ptr(), c.as_ptr(), place.as_mut_ptr(), status);
            });
            let start = place.as_ptr();
            let length = (&raw const (*start).length).read();
            let mtime_nsec = (&raw const (*start).mtime_nsec).read();
            let is_directory = start.cast::<u8>().add(offset_of!(TF_FileStatistics, is_directory));
            (result, length, mtime_nsec, is_directory.read())
        };
        let unset =
            [length == UNSET as i64, mtime_nsec == UNSET as i64, is_directory == UNSET as u8];
        let violation = |what: &str| self.violation("stat", &path, what);
        if let Err(error) = result {
            if unset != [true; 3] {
                violation("wrote statistics although it failed");
            }
            return Err(error);
        }
        if unset.contains(&true) {
            violation("answered OK but left a field unset, which TensorFlow copies");
        } else if is_directory > 1 {
            violation("`is_directory` is neither true nor false");
        } else if length < 0 {
            violation("the length is negative, which TensorFlow passes on");
        }
        let distance = Duration::from_nanos(mtime_nsec.unsigned_abs());
        let mut found = FileStatistics::file(u64::try_from(length).unwrap_or(0));
        found.is_directory = is_directory == 1;
        Ok(found.with_modified(if mtime_nsec < 0 {
            SystemTime::UNIX_EPOCH - distance
        } else {
            SystemTime::UNIX_EPOCH + distance
        }))
    }

    /// Returns OK if a path is a directory, or `FAILED_PRECONDITION` for a file. TensorFlow ignores the value that the
    /// plugin returns with the status. Its default calls `path_exists` and `stat`.
    pub fn is_directory(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        const OP: &str = "is_directory";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.is_directory else {
            self.path_exists(uri)?;
            ensure!(self.stat(uri)?.is_directory, Error::failed_precondition("Not a directory"));
            return Ok(());
        };
        let path = self.translate_name(uri)?;
        let (result, returned) = self.path_op(OP, slot, &path);
        if result.is_ok() != returned {
            let what = format!(
                "returned {returned}, but the status, which alone TensorFlow looks at, says otherwise"
            );
            self.violation(OP, &path, what);
        }
        result
    }

    /// Returns the length of a file in bytes. TensorFlow's default calls `stat`.
    pub fn get_file_size(&self, uri: impl AsRef<[u8]>) -> Result<u64> {
        const OP: &str = "get_file_size";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.get_file_size else {
            let found = self.stat(uri)?;
            let refused = "Called GetFileSize on a directory";
            ensure!(!found.is_directory, Error::failed_precondition(refused));
            return Ok(found.length);
        };
        let path = self.translate_name(uri)?;
        let (result, returned) = self.path_op(OP, slot, &path);
        let size = number(&self.mounted, OP, &path, &result, returned, "a huge number");
        result.map(|()| size)
    }

    /// Drops the plugin's caches. Does nothing if the slot is null.
    pub fn flush_caches(&self) {
        if let Some(slot) = self.mounted.tables.filesystem.flush_caches {
            // SAFETY: an initialised filesystem of this table.
            unsafe { slot(self.as_ptr()) };
        }
    }
}
