//! TensorFlow's C API, as far as the tests need it: loading plugins, the files of `tensorflow/c/env.h`,
//! and the operators `ReadFile`, `WriteFile` and `MatchingFiles` by way of `tensorflow/c/eager/c_api.h`.

mod functions;
mod heap;
mod operators;

pub use heap::bytes_in_use;

use core::ffi::{CStr, c_char};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use functions::{Functions, Status, WritableFileHandle};
use std::path::Path;
use tf_fs_sys::{TF_Code, TF_FileStatistics, TF_OK};

/// TensorFlow, loaded into this process.
pub struct Host {
    functions: Functions,
    context: operators::Context,
}

/// What a status says that is not OK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One of the constants of `tf_status.h`.
    pub code: TF_Code,
    /// The message. Not necessarily text, which the tests want to see.
    pub message: Vec<u8>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}: {}", self.code, String::from_utf8_lossy(&self.message))
    }
}

impl std::error::Error for Failure {}

/// The result of an operation.
pub type Result<T> = core::result::Result<T, Failure>;

impl Host {
    /// Loads the libraries in `directory` as Python does, invisible for everything loaded later, and makes
    /// a context for operators.
    ///
    /// # Errors
    /// The dynamic linker's, or those of the context.
    pub fn load(directory: &Path) -> core::result::Result<Self, Box<dyn std::error::Error>> {
        // The order matters: the second library needs the first.
        let libraries = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]
            .into_iter()
            .map(|name| functions::open(&directory.join(name)))
            .collect::<core::result::Result<Vec<_>, _>>()?;
        let functions = Functions::bind(libraries)?;
        let context = operators::Context::new(&functions)?;
        Ok(Self { functions, context })
    }

    /// Runs a function that takes a status.
    fn check<T>(&self, call: impl FnOnce(*mut Status) -> T) -> Result<T> {
        self.functions.check(call)
    }

    /// Registers a filesystem plugin.
    ///
    /// # Errors
    /// Those of the host.
    pub fn register(&self, plugin: &CStr) -> Result<()> {
        // SAFETY: a C string and a status. What the plugin does is what is tested.
        self.check(|status| unsafe {
            (self.functions.TF_RegisterFilesystemPlugin)(plugin.as_ptr(), status)
        })
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// Those of the filesystem, as for all that follow.
    pub fn create_dir(&self, path: &CStr) -> Result<()> {
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.functions.TF_CreateDir)(path.as_ptr(), status) })
    }

    /// Deletes an empty directory.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn delete_dir(&self, path: &CStr) -> Result<()> {
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.functions.TF_DeleteDir)(path.as_ptr(), status) })
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn delete_file(&self, path: &CStr) -> Result<()> {
        // SAFETY: a C string and a status.
        self.check(|status| unsafe { (self.functions.TF_DeleteFile)(path.as_ptr(), status) })
    }

    /// Deletes a tree; also returns how many files and directories are left.
    pub fn delete_recursively(&self, path: &CStr) -> (Result<()>, i64, i64) {
        let (mut files, mut dirs) = (-7, -7);
        // SAFETY: a C string, two counters and a status.
        let result = self.check(|status| unsafe {
            (self.functions.TF_DeleteRecursively)(path.as_ptr(), &mut files, &mut dirs, status)
        });
        (result, files, dirs)
    }

    /// Length, time and kind.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn stat(&self, path: &CStr) -> Result<TF_FileStatistics> {
        let mut statistics = MaybeUninit::uninit();
        // SAFETY: a C string, a place for the answer and a status.
        self.check(|status| unsafe {
            (self.functions.TF_FileStat)(path.as_ptr(), statistics.as_mut_ptr(), status)
        })?;
        // SAFETY: an OK status means that the host has filled it.
        Ok(unsafe { statistics.assume_init() })
    }

    /// The entries of a directory.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn children(&self, path: &CStr) -> Result<Vec<Vec<u8>>> {
        // SAFETY: a C string and a status.
        let stream =
            self.check(|status| unsafe { (self.functions.TF_GetChildren)(path.as_ptr(), status) })?;
        let mut names = Vec::new();
        let mut name: *const c_char = ptr::null();
        // SAFETY: the stream is the one that was made above, until it is ended below; a name is a C
        // string until the next one is requested.
        unsafe {
            while (self.functions.TF_StringStreamNext)(stream, &mut name) {
                names.push(CStr::from_ptr(name).to_bytes().to_vec());
            }
            (self.functions.TF_StringStreamDone)(stream);
        }
        Ok(names)
    }

    /// Creates a file for writing, empty.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn create(&self, path: &CStr) -> Result<Writer<'_>> {
        let mut handle = ptr::null_mut();
        // SAFETY: a C string, a place for the answer and a status.
        self.check(|status| unsafe {
            (self.functions.TF_NewWritableFile)(path.as_ptr(), &mut handle, status)
        })?;
        Ok(Writer { host: self, handle })
    }

    /// The content of a file, by the operator `ReadFile`.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn read_file(&self, path: &[u8]) -> Result<Vec<u8>> {
        let mut contents = self.context.run(&self.functions, c"ReadFile", &[path])?;
        Ok(contents.swap_remove(0))
    }

    /// Writes a file, by the operator `WriteFile`, which creates missing directories.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn write_file(&self, path: &[u8], content: &[u8]) -> Result<()> {
        self.context.run(&self.functions, c"WriteFile", &[path, content]).map(drop)
    }

    /// The names that match a pattern, by the operator `MatchingFiles`.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn matching_files(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.context.run(&self.functions, c"MatchingFiles", &[pattern])
    }
}

/// An open file.
pub struct Writer<'h> {
    host: &'h Host,
    handle: *mut WritableFileHandle,
}

// SAFETY: the host lets a file migrate between threads; `&mut` keeps two from using it at a time.
unsafe impl Send for Writer<'_> {}

impl Writer<'_> {
    /// Appends.
    ///
    /// # Errors
    /// Those of the filesystem, as for all that follow.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: an open file, a readable buffer with its length, and a status.
        self.host.check(|status| unsafe {
            let (data, length) = (data.as_ptr().cast(), data.len());
            (self.host.functions.TF_AppendWritableFile)(self.handle, data, length, status)
        })
    }

    /// Flushes.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: an open file and a status.
        self.host.check(|status| unsafe {
            (self.host.functions.TF_FlushWritableFile)(self.handle, status)
        })
    }

    /// Makes durable.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn sync(&mut self) -> Result<()> {
        // SAFETY: an open file and a status.
        self.host.check(|status| unsafe {
            (self.host.functions.TF_SyncWritableFile)(self.handle, status)
        })
    }

    /// Closes; the host then deletes its file object.
    ///
    /// # Errors
    /// Those of the filesystem.
    pub fn close(self) -> Result<()> {
        // SAFETY: an open file, which this call deletes; `self` is gone with it.
        self.host.check(|status| unsafe {
            (self.host.functions.TF_CloseWritableFile)(self.handle, status)
        })
    }
}
