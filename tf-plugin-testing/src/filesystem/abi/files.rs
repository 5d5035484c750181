//! Open files and mapped regions.

use super::memory::{Buffer, is_as_made};
use super::mounted::{EMPTY, Mounted, c_path};
use core::ffi::{c_char, c_void};
use core::ptr;
use std::sync::Arc;
use tf_fs_plugin::RegionContent;
use tf_fs_sys::{
    TF_Filesystem, TF_RandomAccessFile, TF_ReadOnlyMemoryRegion, TF_Status, TF_WritableFile,
};
use tf_plugin_core::{Code, Error, Result};

pub(in crate::filesystem) fn unimplemented(op: &str, name: &[u8]) -> Error {
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
    pub(in crate::filesystem) name: Vec<u8>,
    /// From `Box::into_raw`.
    handle: *mut T,
    /// Last: the filesystem outlives its files.
    pub(in crate::filesystem) mounted: Arc<Mounted>,
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
    pub(in crate::filesystem) fn as_ptr(&self) -> *mut T {
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

/// The answer of one `read`.
pub(in crate::filesystem) struct RawRead {
    pub(in crate::filesystem) result: Result<()>,
    pub(in crate::filesystem) returned: i64,
    pub(in crate::filesystem) margins_are_intact: bool,
    /// The bytes that the plugin claims, at most as many as were requested.
    pub(in crate::filesystem) content: Vec<u8>,
    seed: u8,
}

impl RawRead {
    /// Whether the plugin claims this byte, and it is as the host had made it.
    pub(in crate::filesystem) fn is_untouched(&self, index: usize) -> bool {
        self.content.get(index).is_some_and(|byte| is_as_made(index, *byte, self.seed))
    }
}

impl Open<TF_RandomAccessFile> {
    /// Reads into a buffer that is filled with the pattern of `seed`.
    pub(in crate::filesystem) fn raw_read(
        &self,
        offset: u64,
        n: usize,
        seed: u8,
    ) -> Result<RawRead> {
        let slot = self.mounted.tables.random_access_file.read;
        let slot = slot.ok_or_else(|| unimplemented("Read", &self.name))?;
        let mut buffer = Buffer::new(n, seed).ok_or_else(|| {
            let text = format!("the in-process host has no memory for a buffer of {n} bytes");
            Error::new(Code::ResourceExhausted, text)
        })?;
        let place = buffer.as_mut_ptr();
        // SAFETY: an open file of this table, a buffer of `n` bytes, null if `n` is 0, and a status.
        let (result, returned) = self.mounted.call("read", &self.name, |status| unsafe {
            slot(self.as_ptr(), offset, n, place, status)
        });
        let claimed = usize::try_from(returned).unwrap_or(0).min(n);
        Ok(RawRead {
            result,
            returned,
            margins_are_intact: buffer.margins_are_intact(),
            content: buffer.content(claimed).to_vec(),
            seed,
        })
    }
}

impl Open<TF_WritableFile> {
    pub(in crate::filesystem) fn raw_append(&self, data: &[u8]) -> Result<()> {
        let slot = self.mounted.tables.writable_file.append;
        let slot = slot.ok_or_else(|| unimplemented("Append", &self.name))?;
        // A copy of exactly its size, gone after the call; null if there is none, as TensorFlow passes
        // it at the end of a copy.
        let copy: Box<[u8]> = data.into();
        let start = if copy.is_empty() { ptr::null() } else { copy.as_ptr().cast() };
        // SAFETY: an open file of this table, `len` bytes and a status.
        let call = |status| unsafe { slot(self.as_ptr(), start, copy.len(), status) };
        self.mounted.call("append", &self.name, call).0
    }

    pub(in crate::filesystem) fn raw_tell(&self) -> Result<(Result<()>, i64)> {
        let slot = self.mounted.tables.writable_file.tell;
        let slot = slot.ok_or_else(|| unimplemented("Tell", &self.name))?;
        // SAFETY: an open file of this table and a status.
        Ok(self.mounted.call("tell", &self.name, |status| unsafe { slot(self.as_ptr(), status) }))
    }
}

macro_rules! writable_slots {
    ($($raw:ident, $op:ident;)*) => {
        impl Open<TF_WritableFile> {$(
            pub(in crate::filesystem) fn $raw(&self) -> Option<Result<()>> {
                let slot = self.mounted.tables.writable_file.$op?;
                // SAFETY: an open file of this table and a status.
                let (result, ()) = self.mounted.call(stringify!($op), &self.name, |status| unsafe {
                    slot(self.as_ptr(), status);
                });
                Some(result)
            }
        )*}
    };
}
writable_slots! {
    raw_flush, flush;
    raw_sync, sync;
    raw_close, close;
}

impl Open<TF_ReadOnlyMemoryRegion> {
    /// What `data` and `length` answer now.
    pub(in crate::filesystem) fn raw_content(&self) -> (*const u8, u64) {
        let table = &self.mounted.tables.read_only_memory_region;
        // SAFETY: an open region of this table.
        unsafe {
            (
                table.data.map_or(ptr::null(), |data| data(self.as_ptr())).cast(),
                table.length.map_or(0, |length| length(self.as_ptr())),
            )
        }
    }

    /// The content; empty if the plugin gives none.
    pub(in crate::filesystem) fn content(&self) -> RegionContent<'_> {
        let (data, length) = self.raw_content();
        match usize::try_from(length) {
            Ok(length) if !data.is_null() && isize::try_from(length).is_ok() => {
                // SAFETY: the header promises `length` readable bytes until `cleanup`, which runs when `self` is
                // dropped; they may change.
                unsafe { RegionContent::shared(data, length) }
            }
            _ => RegionContent::from(&[][..]),
        }
    }
}
