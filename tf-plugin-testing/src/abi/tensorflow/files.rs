//! The files of `tensorflow/c/env.h`.

use super::library::{TensorFlow, call, text};
use core::ffi::{CStr, c_char};
use core::mem::{self, MaybeUninit};
use core::ptr;
use tf_fs_sys::{TF_FileStatistics, TF_WritableFileHandle};
use tf_plugin_core::Result;

impl TensorFlow {
    /// Creates a directory.
    pub fn create_dir(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        call!(self, env.TF_CreateDir(path.as_ptr()))
    }

    /// Deletes an empty directory.
    pub fn delete_dir(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        call!(self, env.TF_DeleteDir(path.as_ptr()))
    }

    /// Deletes a file.
    pub fn delete_file(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        call!(self, env.TF_DeleteFile(path.as_ptr()))
    }

    /// Deletes a tree; also returns how many files and directories are left.
    pub fn delete_recursively(&self, path: &str) -> (Result<()>, i64, i64) {
        let (mut files, mut dirs) = (-7, -7);
        let result = text(path).and_then(|path| {
            call!(self, env.TF_DeleteRecursively(path.as_ptr(), &raw mut files, &raw mut dirs))
        });
        (result, files, dirs)
    }

    /// Returns length, time and kind of a path.
    pub fn stat(&self, path: &str) -> Result<TF_FileStatistics> {
        let path = text(path)?;
        let mut statistics = MaybeUninit::uninit();
        call!(self, env.TF_FileStat(path.as_ptr(), statistics.as_mut_ptr()))?;
        // SAFETY: an OK status means that the host has filled it.
        Ok(unsafe { statistics.assume_init() })
    }

    /// Returns the names of the entries of a directory.
    pub fn children(&self, path: &str) -> Result<Vec<String>> {
        let path = text(path)?;
        let stream = call!(self, env.TF_GetChildren(path.as_ptr()))?;
        let mut names = Vec::new();
        let mut name: *const c_char = ptr::null();
        // SAFETY: the stream is the one that was made above, until it is ended below; a name is a C
        // string until the next call.
        unsafe {
            while (self.env.TF_StringStreamNext)(stream, &raw mut name) {
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
            }
            (self.env.TF_StringStreamDone)(stream);
        }
        Ok(names)
    }

    /// Creates an empty file and opens it for writing.
    pub fn create(&self, path: &str) -> Result<Writer<'_>> {
        let path = text(path)?;
        let mut handle = ptr::null_mut();
        call!(self, env.TF_NewWritableFile(path.as_ptr(), &raw mut handle))?;
        Ok(Writer { tensorflow: self, handle })
    }
}

/// An open file. Dropping it closes it without reporting errors: C has no other way to end it.
#[derive(Debug)]
pub struct Writer<'t> {
    tensorflow: &'t TensorFlow,
    handle: *mut TF_WritableFileHandle,
}

// SAFETY: the host lets a file migrate between threads; `&mut` keeps two from using it at a time.
unsafe impl Send for Writer<'_> {}

impl Writer<'_> {
    /// Appends bytes.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        let start = data.as_ptr().cast();
        call!(self.tensorflow, env.TF_AppendWritableFile(self.handle, start, data.len()))
    }

    /// Flushes the file.
    pub fn flush(&mut self) -> Result<()> {
        call!(self.tensorflow, env.TF_FlushWritableFile(self.handle))
    }

    /// Makes the written bytes durable.
    pub fn sync(&mut self) -> Result<()> {
        call!(self.tensorflow, env.TF_SyncWritableFile(self.handle))
    }

    /// Closes the file; the host then deletes its file object.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let handle = mem::replace(&mut self.handle, ptr::null_mut());
        if handle.is_null() {
            return Ok(());
        }
        // The function deletes the file object, which nobody else has any more.
        call!(self.tensorflow, env.TF_CloseWritableFile(handle))
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // A case that ends early has reported why.
        let _ = self.end();
    }
}
