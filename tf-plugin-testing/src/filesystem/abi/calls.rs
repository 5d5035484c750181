//! One call a slot of a filesystem's table. `None` means that the slot is null.

use super::mounted::{Mounted, c_path};
use crate::abi::status::Status;
use core::ffi::{CStr, c_char, c_int};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::ffi::CString;
use tf_fs_sys::{TF_FileStatistics, TF_Filesystem, TF_ListOp, TF_Status, TF_TwoPathOp};
use tf_plugin_core::Result;

/// What `stat` has written, read without believing any of it.
pub(in crate::filesystem) struct RawStatistics {
    pub(in crate::filesystem) length: i64,
    pub(in crate::filesystem) mtime_nsec: i64,
    /// A C++ `bool`, of which any byte may have been written.
    pub(in crate::filesystem) is_directory: u8,
}

/// What the host puts into a place that a plugin is to fill.
pub(in crate::filesystem) const UNSET: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// The answer of a listing: the count, and each entry, `None` where it is null.
pub(in crate::filesystem) struct Listing {
    pub(in crate::filesystem) count: c_int,
    /// Whether the array is null although the count is positive.
    pub(in crate::filesystem) no_array: bool,
    pub(in crate::filesystem) entries: Vec<Option<Vec<u8>>>,
}

/// A slot with one path and a status.
pub(in crate::filesystem) type PathOp<R> =
    unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut TF_Status) -> R;
type DeleteRecursively =
    unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut u64, *mut u64, *mut TF_Status);
type Stat = unsafe extern "C" fn(
    *const TF_Filesystem,
    *const c_char,
    *mut TF_FileStatistics,
    *mut TF_Status,
);

impl Mounted {
    /// An operation with one path and a status: what the status says, and what the slot returned.
    pub(in crate::filesystem) fn path_op<R>(
        &self,
        op: &'static str,
        slot: PathOp<R>,
        path: &[u8],
    ) -> (Result<()>, R) {
        let c = c_path(path);
        // SAFETY: an initialised filesystem of this table, a C string and a status.
        self.call(op, path, |status| unsafe { slot(self.as_ptr(), c.as_ptr(), status) })
    }
    pub(in crate::filesystem) fn two_path_op(
        &self,
        op: &'static str,
        slot: TF_TwoPathOp,
        src: &[u8],
        dst: &[u8],
    ) -> Result<()> {
        let (c_src, c_dst) = (c_path(src), c_path(dst));
        // SAFETY: an initialised filesystem of this table, two C strings and a status.
        let call = |status| unsafe { slot(self.as_ptr(), c_src.as_ptr(), c_dst.as_ptr(), status) };
        self.call(op, src, call).0
    }

    /// The answer and both counters, [`UNSET`] where they were not written.
    pub(in crate::filesystem) fn raw_delete_recursively(
        &self,
        slot: DeleteRecursively,
        path: &[u8],
    ) -> (Result<()>, u64, u64) {
        let c = c_path(path);
        let (mut files, mut dirs) = (UNSET, UNSET);
        // SAFETY: an initialised filesystem of this table, a C string, two counters and a status.
        let (result, ()) = self.call("delete_recursively", path, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), &mut files, &mut dirs, status);
        });
        (result, files, dirs)
    }

    /// What was returned, and a status a path if `with_statuses`.
    pub(in crate::filesystem) fn raw_paths_exist(
        &self,
        paths: &[Vec<u8>],
        with_statuses: bool,
    ) -> Option<(bool, Vec<Result<()>>)> {
        const OP: &str = "paths_exist";
        let slot = self.tables.filesystem.paths_exist?;
        let strings: Vec<CString> = paths.iter().map(|path| c_path(path)).collect();
        let mut pointers: Vec<*mut c_char> =
            strings.iter().map(|string| string.as_ptr().cast_mut()).collect();
        let statuses: Vec<Status> = if with_statuses {
            paths.iter().map(|path| Status::new(&self.session.log, OP, path)).collect()
        } else {
            Vec::new()
        };
        let mut raw: Vec<_> = statuses.iter().map(Status::as_ptr).collect();
        let count = c_int::try_from(paths.len()).ok()?;
        // SAFETY: an initialised filesystem of this table, `count` C strings, which the slot does not
        // write, and null or as many statuses.
        let all = unsafe {
            slot(
                self.as_ptr(),
                pointers.as_mut_ptr(),
                count,
                if with_statuses { raw.as_mut_ptr() } else { ptr::null_mut() },
            )
        };
        Some((all, statuses.iter().map(Status::result).collect()))
    }

    pub(in crate::filesystem) fn raw_stat(
        &self,
        slot: Stat,
        path: &[u8],
    ) -> (Result<()>, RawStatistics) {
        let c = c_path(path);
        let mut place = MaybeUninit::<TF_FileStatistics>::uninit();
        // SAFETY: every byte of the struct is within `place`; any byte is a `u8`, and afterwards each
        // field has at least the bytes that were put there first. The slot gets an initialised
        // filesystem of this table, a C string, a struct to fill and a status.
        unsafe {
            place
                .as_mut_ptr()
                .cast::<u8>()
                .write_bytes(UNSET as u8, size_of::<TF_FileStatistics>());
            let (result, ()) = self.call("stat", path, |status| {
                slot(self.as_ptr(), c.as_ptr(), place.as_mut_ptr(), status);
            });
            let start = place.as_ptr();
            let statistics = RawStatistics {
                length: (&raw const (*start).length).read(),
                mtime_nsec: (&raw const (*start).mtime_nsec).read(),
                is_directory: start
                    .cast::<u8>()
                    .add(offset_of!(TF_FileStatistics, is_directory))
                    .read(),
            };
            (result, statistics)
        }
    }

    /// The name that the plugin made of `uri`; `Some(None)` if it is null.
    pub(in crate::filesystem) fn raw_translate_name(&self, uri: &[u8]) -> Option<Option<Vec<u8>>> {
        let slot = self.tables.filesystem.translate_name?;
        let c = c_path(uri);
        // SAFETY: an initialised filesystem of this table and a C string; what it returns is null or
        // a C string from the plugin's allocator, which is the host's to free.
        unsafe {
            let name = slot(self.as_ptr(), c.as_ptr());
            Some(self.blocks.take_string("translate_name", uri, name))
        }
    }

    pub(in crate::filesystem) fn raw_list(
        &self,
        op: &'static str,
        slot: TF_ListOp,
        path: &[u8],
    ) -> (Result<()>, Listing) {
        let c = c_path(path);
        let mut array: *mut *mut c_char = ptr::null_mut();
        // SAFETY: an initialised filesystem of this table, a C string, a place that holds null and a
        // status.
        let (result, count) = self.call(op, path, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), &mut array, status)
        });
        let no_array = count > 0 && array.is_null();
        let mut entries = Vec::new();
        if count >= 0 && !array.is_null() {
            // SAFETY: an array of `count` elements, each null or a C string from the plugin's
            // allocator, all the host's to free now. Nothing is freed before all was read, in case
            // that one block came twice.
            unsafe {
                let strings: Vec<*mut c_char> = (0..usize::try_from(count).unwrap_or(0))
                    .map(|index| array.add(index).read())
                    .collect();
                let fresh_array = self.blocks.receive(op, path, array);
                let fresh: Vec<bool> =
                    strings.iter().map(|&string| self.blocks.receive(op, path, string)).collect();
                entries.extend(strings.iter().map(|&string| {
                    (!string.is_null()).then(|| CStr::from_ptr(string).to_bytes().to_vec())
                }));
                for (string, fresh) in strings.into_iter().zip(fresh) {
                    if fresh && !string.is_null() {
                        self.blocks.free(string);
                    }
                }
                if fresh_array {
                    self.blocks.free(array);
                }
            }
        } else if count >= 0 {
            // TensorFlow frees the null array too.
            // SAFETY: null.
            unsafe { self.blocks.free(array) };
        }
        (result, Listing { count, no_array, entries })
    }

    pub(in crate::filesystem) fn raw_flush_caches(&self) {
        if let Some(slot) = self.tables.filesystem.flush_caches {
            // SAFETY: an initialised filesystem of this table.
            unsafe { slot(self.as_ptr()) };
        }
    }
}
