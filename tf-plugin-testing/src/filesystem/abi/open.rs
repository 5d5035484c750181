//! Open files and regions: a struct of the header that the plugin fills, until its `cleanup`.

use super::mounted::{Mounted, c_path};
use core::ffi::{c_char, c_void};
use core::ptr;
use std::sync::Arc;
use tf_fs_sys::{TF_Filesystem, TF_Status};
use tf_plugin_core::{Code, Error, Result};

pub(super) fn unimplemented(op: &str, name: &[u8]) -> Error {
    Error::new(Code::Unimplemented, format!("{op}() not implemented for {}", name.escape_ascii()))
}

/// A slot that opens a file or region.
pub(in crate::filesystem) type OpenOp<T> =
    unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut T, *mut TF_Status);

/// A slot that closes it.
pub(in crate::filesystem) type CleanupOp<T> = unsafe extern "C" fn(*mut T);

/// An open file or region; `cleanup` runs when it is dropped.
#[derive(Debug)]
pub(in crate::filesystem) struct Open<T> {
    pub(super) name: Vec<u8>,
    /// From `Box::into_raw`. Each such struct of the header is one pointer to the plugin's state.
    handle: *mut *mut c_void,
    cleanup: Option<CleanupOp<T>>,
    /// Last: the filesystem outlives its files.
    pub(super) mounted: Arc<Mounted>,
}

// SAFETY: the header lets a file move between threads.
unsafe impl<T> Send for Open<T> {}
// SAFETY: the header lets several threads read one file or region; that a writable file is used by one
// thread at a time is for `WritableFile` to see to.
unsafe impl<T> Sync for Open<T> {}

impl<T> Open<T> {
    /// Calls an operation that opens a file or region.
    pub(in crate::filesystem) fn new(
        mounted: &Arc<Mounted>,
        op: &'static str,
        (slot, cleanup): (OpenOp<T>, Option<CleanupOp<T>>),
        name: &[u8],
    ) -> Result<Self> {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let path = c_path(name);
        let handle = Box::into_raw(Box::new(ptr::null_mut::<c_void>()));
        // SAFETY: an initialised filesystem of this table, a C string, an empty file or region, and a status.
        let (result, ()) = mounted.call(op, name, |status| unsafe {
            slot(mounted.as_ptr(), path.as_ptr(), handle.cast(), status);
        });
        // SAFETY: from `Box::into_raw`; the call is over.
        let state = unsafe { *handle };
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
        Ok(Self { name: name.to_vec(), handle, cleanup, mounted: Arc::clone(mounted) })
    }

    /// Returns the pointer that the operations get.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.handle.cast()
    }
}

impl<T> Drop for Open<T> {
    fn drop(&mut self) {
        // SAFETY: it is open, and nothing uses it afterwards; the handle is from `Box::into_raw`.
        unsafe {
            if let Some(cleanup) = self.cleanup {
                cleanup(self.as_ptr());
            }
            drop(Box::from_raw(self.handle));
        }
    }
}
