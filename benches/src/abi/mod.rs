//! Loads a plugin and calls its C tables as TensorFlow does, with TensorFlow's own statuses.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, ensure};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_Code, TF_FileStatistics, TF_Filesystem, TF_FilesystemOps,
    TF_FilesystemPluginInfo, TF_InitPluginFn, TF_OK, TF_RandomAccessFile, TF_RandomAccessFileOps,
    TF_Status, TF_WritableFile, TF_WritableFileOps,
};

mod device;

pub use device::{Copying, Device, Event, Filling, Stream};

/// A code and a message, as a status holds them.
pub type Outcome = (TF_Code, String);

/// TensorFlow's status functions, in this process for good.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    functions: &'static StatusFunctions,
}

impl Host {
    /// Loads `libtensorflow_framework.so.2`, whose functions every plugin loaded later then calls.
    ///
    /// # Errors
    /// When the library cannot be loaded or lacks a function.
    pub fn load(framework: &Path) -> Result<Self> {
        // SAFETY: TensorFlow's library, whose initialisers run in every TensorFlow process.
        let library = unsafe { Library::open(Some(framework), RTLD_NOW | RTLD_GLOBAL) }
            .with_context(|| format!("cannot load {}", framework.display()))?;
        // Its threads and statics do not outlive an unload.
        std::mem::forget(library);
        Ok(Self { functions: StatusFunctions::get()? })
    }

    /// What a status of this host holds.
    fn outcome(&self, status: *mut TF_Status) -> Outcome {
        // SAFETY: a status of the host; its message is valid until the status changes.
        unsafe {
            let message = CStr::from_ptr((self.functions.TF_Message)(status));
            ((self.functions.TF_GetCode)(status), message.to_string_lossy().into_owned())
        }
    }
}

/// A plugin with one scheme, initialised, and a status that all its calls share.
///
/// The status is not made anew for each call, so that the plugins are measured rather than
/// TensorFlow's allocator.
#[derive(Debug)]
pub struct Plugin {
    host: Host,
    status: *mut TF_Status,
    filesystem: TF_Filesystem,
    ops: TF_FilesystemOps,
    readers: TF_RandomAccessFileOps,
    writers: TF_WritableFileOps,
    free: unsafe extern "C" fn(*mut std::ffi::c_void),
}

impl Plugin {
    /// Loads a filesystem plugin that keeps the promises of TensorFlow's header.
    ///
    /// # Errors
    /// When the library cannot be loaded, offers no scheme or does not initialise.
    pub fn load(host: Host, path: &Path) -> Result<Self> {
        // SAFETY: `path` is a filesystem plugin, and `TF_InitPlugin` has the
        // type that the header declares. `info` is zeroed, the tables that it then points to are
        // valid, and everything is copied before it could be freed. What is loaded stays loaded.
        unsafe {
            let library = Library::open(Some(path), RTLD_NOW)
                .with_context(|| format!("cannot load {}", path.display()))?;
            let init: Symbol<TF_InitPluginFn> = library.get(b"TF_InitPlugin\0")?;
            let mut info: TF_FilesystemPluginInfo = std::mem::zeroed();
            init(&mut info);
            std::mem::forget(library);
            ensure!(info.num_schemes == 1, "{} offers no scheme", path.display());
            let offer = &*info.ops;
            let ops = *offer.filesystem_ops;
            let mut plugin = Self {
                host,
                status: (host.functions.TF_NewStatus)(),
                filesystem: TF_Filesystem { plugin_filesystem: ptr::null_mut() },
                ops,
                readers: *offer.random_access_file_ops,
                writers: *offer.writable_file_ops,
                free: info.plugin_memory_free.context("no allocator")?,
            };
            (ops.init.context("no `init`")?)(&mut plugin.filesystem, plugin.status);
            plugin.done("init")?;
            Ok(plugin)
        }
    }

    /// What the last call answered.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.host.outcome(self.status)
    }

    /// The code of what the last call answered.
    #[must_use]
    pub fn code(&self) -> TF_Code {
        // SAFETY: a status of the host.
        unsafe { (self.host.functions.TF_GetCode)(self.status) }
    }

    fn done(&self, what: &str) -> Result<()> {
        let (code, message) = self.outcome();
        ensure!(code == TF_OK, "{what} failed with code {code}: {message}");
        Ok(())
    }

    /// Calls `path_exists`.
    pub fn path_exists(&self, path: &CStr) {
        if let Some(path_exists) = self.ops.path_exists {
            // SAFETY: a filesystem of this table, a C string and a status.
            unsafe { path_exists(&self.filesystem, path.as_ptr(), self.status) };
        }
    }

    /// Calls `stat`.
    pub fn stat(&self, path: &CStr) -> TF_FileStatistics {
        let mut stats = TF_FileStatistics::default();
        if let Some(stat) = self.ops.stat {
            // SAFETY: a filesystem of this table, a C string, a place for the answer and a status.
            unsafe { stat(&self.filesystem, path.as_ptr(), &mut stats, self.status) };
        }
        stats
    }

    /// Calls `create_dir`.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn create_dir(&self, path: &CStr) -> Result<()> {
        let create_dir = self.ops.create_dir.context("no `create_dir`")?;
        // SAFETY: a filesystem of this table, a C string and a status.
        unsafe { create_dir(&self.filesystem, path.as_ptr(), self.status) };
        self.done("create_dir")
    }

    /// Calls `delete_file` or `delete_dir`.
    pub fn delete(&self, path: &CStr, directory: bool) {
        let slot = if directory { self.ops.delete_dir } else { self.ops.delete_file };
        if let Some(slot) = slot {
            // SAFETY: a filesystem of this table, a C string and a status.
            unsafe { slot(&self.filesystem, path.as_ptr(), self.status) };
        }
    }

    /// Calls `get_children` and hands each name to `visit`, then frees all as TensorFlow does.
    /// Returns what the plugin returned.
    pub fn get_children(&self, path: &CStr, mut visit: impl FnMut(&CStr)) -> i32 {
        let Some(get_children) = self.ops.get_children else { return -1 };
        let mut entries: *mut *mut c_char = ptr::null_mut();
        // SAFETY: a filesystem of this table, a C string, a place for the answer and a status. The
        // answer is an array of as many C strings as it says, all from the plugin's allocator.
        unsafe {
            let count = get_children(&self.filesystem, path.as_ptr(), &mut entries, self.status);
            for index in 0..usize::try_from(count).unwrap_or(0) {
                let name = *entries.add(index);
                visit(CStr::from_ptr(name));
                (self.free)(name.cast());
            }
            if count >= 0 {
                (self.free)(entries.cast());
            }
            count
        }
    }

    /// Calls `translate_name`, hands the name to `visit` and frees it as TensorFlow does.
    pub fn translate_name(&self, path: &CStr, visit: impl FnOnce(&CStr)) {
        let Some(translate_name) = self.ops.translate_name else { return };
        // SAFETY: a filesystem of this table and a C string; the answer is a C string from the
        // plugin's allocator.
        unsafe {
            let name = translate_name(&self.filesystem, path.as_ptr());
            visit(CStr::from_ptr(name));
            (self.free)(name.cast());
        }
    }

    /// Opens a file for reading; `None` if that fails.
    pub fn open(&self, path: &CStr) -> Option<Reader<'_>> {
        let new_file = self.ops.new_random_access_file?;
        let mut file = TF_RandomAccessFile { plugin_file: ptr::null_mut() };
        // SAFETY: a filesystem of this table, a C string, a zeroed file and a status.
        unsafe { new_file(&self.filesystem, path.as_ptr(), &mut file, self.status) };
        (self.code() == TF_OK).then_some(Reader { plugin: self, file })
    }

    /// Opens a file for writing, empty or with its present content; `None` if that fails.
    pub fn create(&self, path: &CStr, keep: bool) -> Option<Writer<'_>> {
        let new_file =
            if keep { self.ops.new_appendable_file } else { self.ops.new_writable_file }?;
        let mut file = TF_WritableFile { plugin_file: ptr::null_mut() };
        // SAFETY: a filesystem of this table, a C string, a zeroed file and a status.
        unsafe { new_file(&self.filesystem, path.as_ptr(), &mut file, self.status) };
        (self.code() == TF_OK).then_some(Writer { plugin: self, file })
    }

    /// Creates a file with this content.
    ///
    /// # Errors
    /// When the plugin's answer is not OK.
    pub fn write(&self, path: &CStr, content: &[u8]) -> Result<()> {
        let Some(mut file) = self.create(path, false) else { return self.done("write") };
        file.append(content);
        self.done("append")?;
        file.close();
        self.done("close")
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // SAFETY: the filesystem and the status are this value's own and not used again.
        unsafe {
            if let Some(cleanup) = self.ops.cleanup {
                cleanup(&mut self.filesystem);
            }
            (self.host.functions.TF_DeleteStatus)(self.status);
        }
    }
}

/// A file that is open for reading; dropping it is the C operation `cleanup`.
#[derive(Debug)]
pub struct Reader<'p> {
    plugin: &'p Plugin,
    file: TF_RandomAccessFile,
}

impl Reader<'_> {
    /// Calls `read`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> i64 {
        let Some(read) = self.plugin.readers.read else { return -1 };
        // SAFETY: a file of this table, a buffer of the length that is passed and a status.
        unsafe {
            let (buffer, n) = (buffer.as_mut_ptr().cast(), buffer.len());
            read(&self.file, offset, n, buffer, self.plugin.status)
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.plugin.readers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&mut self.file) };
        }
    }
}

/// A file that is open for writing; dropping it is the C operation `cleanup`.
#[derive(Debug)]
pub struct Writer<'p> {
    plugin: &'p Plugin,
    file: TF_WritableFile,
}

impl Writer<'_> {
    /// Calls `append`.
    pub fn append(&mut self, data: &[u8]) {
        if let Some(append) = self.plugin.writers.append {
            // SAFETY: a file of this table, as many bytes as are announced and a status.
            unsafe { append(&self.file, data.as_ptr().cast(), data.len(), self.plugin.status) };
        }
    }

    /// Calls `tell`.
    pub fn tell(&mut self) -> i64 {
        // SAFETY: a file of this table and a status.
        self.plugin.writers.tell.map_or(-1, |tell| unsafe { tell(&self.file, self.plugin.status) })
    }

    /// Calls `flush`.
    pub fn flush(&mut self) {
        if let Some(flush) = self.plugin.writers.flush {
            // SAFETY: a file of this table and a status.
            unsafe { flush(&self.file, self.plugin.status) };
        }
    }

    /// Calls `close`.
    pub fn close(&mut self) {
        if let Some(close) = self.plugin.writers.close {
            // SAFETY: a file of this table and a status.
            unsafe { close(&self.file, self.plugin.status) };
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.plugin.writers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&mut self.file) };
        }
    }
}

/// A C string of a name that has no NUL.
///
/// # Panics
/// If it has one.
#[must_use]
pub(crate) fn c(name: impl Into<Vec<u8>>) -> CString {
    CString::new(name).expect("a name without NUL")
}

/// The name of [`tf_plugin_bench_counted`] as the linker knows it.
pub(crate) const COUNTED_SYMBOL: &str = "tf_plugin_bench_counted";

/// What callgrind counts: the instructions of `work`. It finds this function by its name, which
/// therefore must not be mangled.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn tf_plugin_bench_counted(work: &mut dyn FnMut()) {
    work();
    // Without this the call above would be a jump, and callgrind would not see this function return.
    std::hint::black_box(());
}
