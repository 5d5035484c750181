//! A registered filesystem: copies of its tables, and its object.

use super::memory::{Blocks, FreeFn};
use crate::abi::status::Status;
use crate::filesystem::session::Session;
use core::ptr;
use std::ffi::CString;
use std::sync::Arc;
use tf_fs_sys::{
    TF_Filesystem, TF_FilesystemOps, TF_RandomAccessFileOps, TF_ReadOnlyMemoryRegionOps, TF_Status,
    TF_WritableFileOps,
};
use tf_plugin_core::Result;

/// The host's copies of a plugin's tables; a table that the plugin did not offer is all null.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tables {
    /// The operations of the filesystem.
    pub filesystem: TF_FilesystemOps,
    /// The operations of files open for reading.
    pub random_access_file: TF_RandomAccessFileOps,
    /// The operations of files open for writing.
    pub writable_file: TF_WritableFileOps,
    /// The operations of mapped files.
    pub read_only_memory_region: TF_ReadOnlyMemoryRegionOps,
}

/// A filesystem that `init` has initialised. `cleanup` runs when it is dropped.
#[derive(Debug)]
pub(in crate::filesystem) struct Mounted {
    pub(in crate::filesystem) scheme: Vec<u8>,
    pub(in crate::filesystem) tables: Tables,
    pub(in crate::filesystem) blocks: Blocks,
    /// From `Box::into_raw`.
    filesystem: *mut TF_Filesystem,
    /// Last, so that it is dropped, and may report violations, after everything else.
    pub(in crate::filesystem) session: Arc<Session>,
}

// SAFETY: the tables are plain function pointers, which the header lets any thread call, several at a
// time; `filesystem` is written by `init` and `cleanup` only, which have the value to themselves.
unsafe impl Send for Mounted {}
// SAFETY: any thread may call the functions of the tables, and `filesystem` is written only by `init` and
// `cleanup`, which have the value to themselves.
unsafe impl Sync for Mounted {}

impl Mounted {
    /// Runs `init` on a zeroed filesystem.
    ///
    /// # Errors
    /// Returns the error of `init`, after which nothing else is called, as in TensorFlow.
    ///
    /// # Safety
    /// The functions in the tables and the hook must follow the header's rules.
    pub(super) unsafe fn init(
        session: &Arc<Session>,
        scheme: Vec<u8>,
        tables: Tables,
        free: FreeFn,
    ) -> Result<Self> {
        let filesystem =
            Box::into_raw(Box::new(TF_Filesystem { plugin_filesystem: ptr::null_mut() }));
        let mut mounted = Self {
            blocks: Blocks::new(free, Arc::clone(&session.log)),
            scheme,
            tables,
            filesystem,
            session: Arc::clone(session),
        };
        let scheme = mounted.scheme.clone();
        let (result, ()) = mounted.call("init", &scheme, |status| {
            if let Some(init) = tables.filesystem.init {
                // SAFETY: `filesystem` is zeroed and ours, `status` is ours, and `init` has the type that the
                // header declares.
                unsafe { init(filesystem, status) }
            }
        });
        if let Err(error) = result {
            // SAFETY: from `Box::into_raw` above; `init` failed, so that nobody keeps it.
            let state = unsafe { (*filesystem).plugin_filesystem };
            if !state.is_null() {
                mounted.violation(
                    "init",
                    &scheme,
                    "failed but left a state behind; TensorFlow calls no `cleanup` then, so it leaks",
                );
            }
            // It is dropped without `cleanup`.
            mounted.tables.filesystem.cleanup = None;
            return Err(error);
        }
        Ok(mounted)
    }

    /// Returns the object that every slot gets.
    pub(in crate::filesystem) fn as_ptr(&self) -> *mut TF_Filesystem {
        self.filesystem
    }

    pub(in crate::filesystem) fn violation(
        &self,
        operation: &'static str,
        subject: &[u8],
        what: impl Into<String>,
    ) {
        self.session.log.add(operation, subject, what);
    }

    /// Calls a slot with a new status. Returns the result in the status, and what the slot returned.
    pub(in crate::filesystem) fn call<R>(
        &self,
        operation: &'static str,
        subject: &[u8],
        slot: impl FnOnce(*mut TF_Status) -> R,
    ) -> (Result<()>, R) {
        let status = Status::new(&self.session.log, operation, subject);
        let returned = slot(status.as_ptr());
        (status.result(), returned)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: nobody else has the value any more, so this is the last call on its filesystem,
        // which came from `Box::into_raw`.
        unsafe {
            if let Some(cleanup) = self.tables.filesystem.cleanup {
                cleanup(self.filesystem);
            }
            drop(Box::from_raw(self.filesystem));
        }
        let held = self.blocks.count();
        if held > 0 {
            self.violation(
                "cleanup",
                &self.scheme,
                format!("the host still holds {held} block(s) of the plugin; this is a bug of the in-process host"),
            );
        }
    }
}

/// Converts a path to what TensorFlow passes: cut at the first NUL, in memory of exactly its size
/// that is freed after the call.
pub(super) fn c_path(path: &[u8]) -> CString {
    let end = path.iter().position(|&byte| byte == 0);
    CString::new(&path[..end.unwrap_or(path.len())]).unwrap_or_default()
}
