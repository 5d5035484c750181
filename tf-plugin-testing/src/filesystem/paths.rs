//! The operations on paths.

use super::abi::calls::UNSET;
use super::defaults;
use super::file::number;
use super::handle::{TestFilesystem, unsupported};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::FileStatistics;
use tf_fs_plugin::Undeleted;
use tf_plugin_core::{Error, Result};

/// Operations with one path that a status answers, each with its C++ name.
macro_rules! path_ops {
    ($($(#[$doc:meta])* $op:ident, $cpp_name:literal;)*) => {
        impl TestFilesystem {$(
            $(#[$doc])*
            pub fn $op(&self, uri: impl AsRef<[u8]>) -> Result<()> {
                let uri = uri.as_ref();
                let slot = self.mounted.tables.filesystem.$op;
                let slot = slot.ok_or_else(|| unsupported(uri, $cpp_name))?;
                self.mounted.path_op(stringify!($op), slot, &self.translate_name(uri)?).0
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
    /// Creates a directory and its missing ancestors.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default never ends if the root does not exist; this host
    /// notes a violation and returns `INTERNAL`.
    pub fn recursively_create_dir(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.recursively_create_dir else {
            return defaults::recursively_create_dir(self, uri);
        };
        self.mounted.path_op("recursively_create_dir", slot, &self.translate_name(uri)?).0
    }

    /// Deletes a directory with all below it.
    ///
    /// # Errors
    /// That of the plugin, with what is left.
    pub fn delete_recursively(&self, uri: impl AsRef<[u8]>) -> Result<(), Undeleted> {
        const OP: &str = "delete_recursively";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.delete_recursively else {
            return defaults::delete_recursively(self, uri);
        };
        let path = self.translate_name(uri)?;
        let (result, files, dirs) = self.mounted.raw_delete_recursively(slot, &path);
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
        let Some(slot) = self.mounted.tables.filesystem.rename_file else {
            self.copy_file(src, dst)?;
            return self.delete_file(src);
        };
        let (src, dst) = (self.translate_name(src)?, self.translate_name(dst)?);
        self.mounted.two_path_op("rename_file", slot, &src, &dst)
    }

    /// Copies a file within this filesystem.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default reads and appends in pieces of 128 KiB, and copies
    /// into `dst` if that is a directory.
    pub fn copy_file(&self, src: impl AsRef<[u8]>, dst: impl AsRef<[u8]>) -> Result<()> {
        let (src, dst) = (src.as_ref(), dst.as_ref());
        let Some(slot) = self.mounted.tables.filesystem.copy_file else {
            return defaults::copy_file(self, src, self, dst);
        };
        let (src, dst) = (self.translate_name(src)?, self.translate_name(dst)?);
        self.mounted.two_path_op("copy_file", slot, &src, &dst)
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
    pub fn stat(&self, uri: impl AsRef<[u8]>) -> Result<FileStatistics> {
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.stat;
        let slot = slot.ok_or_else(|| unsupported(uri, "Stat"))?;
        let path = self.translate_name(uri)?;
        let (result, raw) = self.mounted.raw_stat(slot, &path);
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
    pub fn is_directory(&self, uri: impl AsRef<[u8]>) -> Result<()> {
        const OP: &str = "is_directory";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.is_directory else {
            self.path_exists(uri)?;
            return if self.stat(uri)?.is_directory {
                Ok(())
            } else {
                Err(Error::failed_precondition("Not a directory"))
            };
        };
        let path = self.translate_name(uri)?;
        let (result, returned) = self.mounted.path_op(OP, slot, &path);
        if result.is_ok() != returned {
            let what = format!(
                "returned {returned}, but the status, which alone TensorFlow looks at, says otherwise"
            );
            self.violation(OP, &path, what);
        }
        result
    }

    /// Length of a file in bytes. TensorFlow's default asks `stat`.
    pub fn get_file_size(&self, uri: impl AsRef<[u8]>) -> Result<u64> {
        const OP: &str = "get_file_size";
        let uri = uri.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.get_file_size else {
            let statistics = self.stat(uri)?;
            return if statistics.is_directory {
                Err(Error::failed_precondition("Called GetFileSize on a directory"))
            } else {
                Ok(statistics.length)
            };
        };
        let path = self.translate_name(uri)?;
        let (result, returned) = self.mounted.path_op(OP, slot, &path);
        let size = number(&self.mounted, OP, &path, &result, returned);
        result.map(|()| size)
    }

    /// Drops the plugin's caches. Nothing happens if the slot is null.
    pub fn flush_caches(&self) {
        self.mounted.raw_flush_caches();
    }
}
