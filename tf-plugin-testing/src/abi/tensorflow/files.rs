//! The files of `tensorflow/c/env.h`.

use super::library::{TensorFlow, text};
use core::ffi::{CStr, c_char};
use core::mem::{self, MaybeUninit};
use core::ptr;
use tf_fs_sys::{TF_FileStatistics, TF_WritableFileHandle};
use tf_plugin_core::Result;

impl TensorFlow {
    /// Creates a directory.
    pub fn create_dir(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.env.TF_CreateDir)(path.as_ptr(), status) })
    }

    /// Deletes an empty directory.
    pub fn delete_dir(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.env.TF_DeleteDir)(path.as_ptr(), status) })
    }

    /// Deletes a file.
    pub fn delete_file(&self, path: &str) -> Result<()> {
        let path = text(path)?;
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.env.TF_DeleteFile)(path.as_ptr(), status) })
    }

    /// Deletes a tree; also answers how many files and directories are left.
    pub fn delete_recursively(&self, path: &str) -> (Result<()>, i64, i64) {
        let (mut files, mut dirs) = (-7, -7);
        let result = text(path).and_then(|path| {
            // SAFETY: a C string, two counters and a status.
            self.check(|status| unsafe {
                let path = path.as_ptr();
                (self.env.TF_DeleteRecursively)(path, &raw mut files, &raw mut dirs, status);
            })
        });
        (result, files, dirs)
    }

    /// Length, time and kind.
    pub fn stat(&self, path: &str) -> Result<TF_FileStatistics> {
        let path = text(path)?;
        let mut statistics = MaybeUninit::uninit();
        // SAFETY: a C string, a place for the answer and a status.
        self.check(|status| unsafe {
            (self.env.TF_FileStat)(path.as_ptr(), statistics.as_mut_ptr(), status);
        })?;
        // SAFETY: an OK status means that the host has filled it.
        Ok(unsafe { statistics.assume_init() })
    }

    /// The entries of a directory.
    pub fn children(&self, path: &str) -> Result<Vec<String>> {
        let path = text(path)?;
        // SAFETY: a C string and a status.
        let stream =
            self.check(|status| unsafe { (self.env.TF_GetChildren)(path.as_ptr(), status) })?;
        let mut names = Vec::new();
        let mut name: *const c_char = ptr::null();
        // SAFETY: the stream is the one that was made above, until it is ended below; a name is a C
        // string until the next one is asked for.
        unsafe {
            while (self.env.TF_StringStreamNext)(stream, &raw mut name) {
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
            }
            (self.env.TF_StringStreamDone)(stream);
        }
        Ok(names)
    }

    /// Creates a file for writing, empty.
    pub fn create(&self, path: &str) -> Result<Writer<'_>> {
        let path = text(path)?;
        let mut handle = ptr::null_mut();
        // SAFETY: a C string, a place for the answer and a status.
        self.check(|status| unsafe {
            (self.env.TF_NewWritableFile)(path.as_ptr(), &raw mut handle, status);
        })?;
        Ok(Writer { tensorflow: self, handle })
    }
}

/// An open file. One that is dropped is closed without a word: C has no other way to end it.
#[derive(Debug)]
pub struct Writer<'t> {
    tensorflow: &'t TensorFlow,
    handle: *mut TF_WritableFileHandle,
}

// SAFETY: the host lets a file migrate between threads; `&mut` keeps two from using it at a time.
unsafe impl Send for Writer<'_> {}

impl Writer<'_> {
    /// Appends.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: an open file, a readable buffer with its length, and a status.
        self.tensorflow.check(|status| unsafe {
            let (data, length) = (data.as_ptr().cast(), data.len());
            (self.tensorflow.env.TF_AppendWritableFile)(self.handle, data, length, status);
        })
    }

    /// Flushes.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: an open file and a status.
        self.tensorflow.check(|status| unsafe {
            (self.tensorflow.env.TF_FlushWritableFile)(self.handle, status);
        })
    }

    /// Makes durable.
    pub fn sync(&mut self) -> Result<()> {
        // SAFETY: an open file and a status.
        self.tensorflow.check(|status| unsafe {
            (self.tensorflow.env.TF_SyncWritableFile)(self.handle, status);
        })
    }

    /// Closes; the host then deletes its file object.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let handle = mem::replace(&mut self.handle, ptr::null_mut());
        if handle.is_null() {
            return Ok(());
        }
        // SAFETY: an open file, which this call deletes; nobody else has it any more.
        self.tensorflow.check(|status| unsafe {
            (self.tensorflow.env.TF_CloseWritableFile)(handle, status);
        })
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // A case that ends early has said why.
        let _ = self.end();
    }
}
