//! What is open: a struct of the header that the plugin fills, until its `cleanup`.

use super::mounted::{EMPTY, Mounted, c_path};
use core::ffi::{c_char, c_void};
use std::sync::Arc;
use tf_fs_sys::{
    TF_Filesystem, TF_RandomAccessFile, TF_ReadOnlyMemoryRegion, TF_Status, TF_WritableFile,
};
use tf_plugin_core::{Code, Error, Result};

pub(super) fn unimplemented(op: &str, name: &[u8]) -> Error {
    Error::new(Code::Unimplemented, format!("{op}() not implemented for {}", name.escape_ascii()))
}

/// A struct of the header that is one pointer to the plugin's state.
pub(in crate::filesystem) trait Handle: Sized {
    fn empty() -> Self;
    fn state(&self) -> *mut c_void;
    /// # Safety
    /// `handle` must be open, and nothing uses it afterwards.
    unsafe fn cleanup(mounted: &Mounted, handle: *mut Self);
}

macro_rules! handle {
    ($type:ident, $field:ident, $table:ident) => {
        impl Handle for $type {
            fn empty() -> Self {
                Self { $field: EMPTY }
            }

            fn state(&self) -> *mut c_void {
                self.$field
            }

            unsafe fn cleanup(mounted: &Mounted, handle: *mut Self) {
                if let Some(cleanup) = mounted.tables.$table.cleanup {
                    // SAFETY: `handle` is a file of this table that was opened and not cleaned up.
                    unsafe { cleanup(handle) };
                }
            }
        }
    };
}
handle!(TF_RandomAccessFile, plugin_file, random_access_file);
handle!(TF_WritableFile, plugin_file, writable_file);
handle!(TF_ReadOnlyMemoryRegion, plugin_memory_region, read_only_memory_region);

/// A slot that opens something.
pub(in crate::filesystem) type OpenOp<T> =
    unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut T, *mut TF_Status);

/// Something that is open; `cleanup` runs when it is dropped.
#[derive(Debug)]
pub(in crate::filesystem) struct Open<T: Handle> {
    pub(super) name: Vec<u8>,
    /// From `Box::into_raw`.
    handle: *mut T,
    /// Last: the filesystem outlives its files.
    pub(super) mounted: Arc<Mounted>,
}

// SAFETY: the header lets a file move between threads.
unsafe impl<T: Handle> Send for Open<T> {}
// SAFETY: the header lets several threads read one file or region; that a writable file is used by one
// thread at a time is for `WritableFile` to see to.
unsafe impl<T: Handle> Sync for Open<T> {}

impl<T: Handle> Open<T> {
    /// Runs an operation that opens something.
    pub(in crate::filesystem) fn new(
        mounted: &Arc<Mounted>,
        op: &'static str,
        slot: OpenOp<T>,
        name: &[u8],
    ) -> Result<Self> {
        let path = c_path(name);
        let handle = Box::into_raw(Box::new(T::empty()));
        // SAFETY: an initialised filesystem of this table, a C string, an empty file or region, and a status.
        let (result, ()) = mounted.call(op, name, |status| unsafe {
            slot(mounted.as_ptr(), path.as_ptr(), handle, status);
        });
        // SAFETY: from `Box::into_raw`; the call is over.
        let state = unsafe { (*handle).state() };
        if let Err(error) = result {
            if !state.is_null() {
                let what = "failed but left a state behind; TensorFlow calls no `cleanup` then, so it leaks";
                mounted.violation(op, name, what);
            }
            // SAFETY: `handle` is from `Box::into_raw` above; it was not opened, so nothing else has it.
            drop(unsafe { Box::from_raw(handle) });
            return Err(error);
        }
        if state.is_null() {
            let what = "answered OK without setting the file; TensorFlow will use it nevertheless";
            mounted.violation(op, name, what);
        }
        Ok(Self { name: name.to_vec(), handle, mounted: Arc::clone(mounted) })
    }

    /// What the operations get.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.handle
    }
}

impl<T: Handle> Drop for Open<T> {
    fn drop(&mut self) {
        // SAFETY: it is open, and nothing uses it afterwards; the handle is from `Box::into_raw`.
        unsafe {
            T::cleanup(&self.mounted, self.handle);
            drop(Box::from_raw(self.handle));
        }
    }
}
