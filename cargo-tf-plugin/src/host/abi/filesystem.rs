//! The tables of a filesystem.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr;

use tf_fs_sys::*;

use super::{CallError, CallResult, Library, Status, text};

/// Copies a table as TensorFlow does: not more of it than the plugin says it has.
///
/// # Safety
/// `table` is null or has `size` bytes, and `T` is a table of functions.
unsafe fn copied<T: Default>(table: *const T, size: usize) -> T {
    let mut copy = T::default();
    if !table.is_null() {
        let size = size.min(size_of::<T>());
        // SAFETY: `size` bytes are behind `table`, and all of them are function pointers, which may be null.
        unsafe { ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut copy).cast(), size) };
    }
    copy
}

/// An operation that fills a struct of the host.
type Filling<T> = unsafe extern "C" fn(*const TF_Filesystem, *const c_char, *mut T, *mut TF_Status);

/// Copies the operations of a filesystem, in either layout.
///
/// # Safety
/// `table` is null or has `size` bytes.
unsafe fn copied_operations(table: *const TF_FilesystemOps, size: usize) -> TF_FilesystemOps {
    if !table.is_null() && size == size_of::<TF_FilesystemOpsWithoutTransactions>() {
        // SAFETY: only the layout without transactions has this size.
        return unsafe { table.cast::<TF_FilesystemOpsWithoutTransactions>().read() }.into();
    }
    // SAFETY: `table` is null or has `size` bytes, by this function's contract.
    unsafe { copied(table, size) }
}

/// A filesystem of a plugin; dropping it calls `cleanup`, which TensorFlow never does.
#[derive(Debug)]
pub struct Filesystem {
    /// Its operations.
    pub ops: TF_FilesystemOps,
    /// The operations of its files that are open for reading.
    pub readers: TF_RandomAccessFileOps,
    /// The operations of its files that are open for writing.
    pub writers: TF_WritableFileOps,
    /// The operations of its memory regions.
    pub regions: TF_ReadOnlyMemoryRegionOps,
    /// The status of the last call.
    pub status: Status,
    free: unsafe extern "C" fn(*mut c_void),
    filesystem: Box<TF_Filesystem>,
}

/// Returns the name of a table, for the error about a missing slot.
fn name_of<T: Record>(_: &T) -> &'static str {
    T::NAME
}

macro_rules! slot {
    ($fs:expr, $table:ident, $name:ident) => {
        $fs.$table.$name.ok_or(CallError::Missing(name_of(&$fs.$table), stringify!($name)))
    };
}

/// Defines operations that only have a status, with the arguments between the filesystem and the status.
macro_rules! operations {
    ($($name:ident($($path:ident),*) = ($($value:expr),*);)*) => {$(
        #[doc = concat!("Calls `", stringify!($name), "`.")]
        pub fn $name(&self, $($path: &CStr),*) -> CallResult<'_> {
            let operation = slot!(self, ops, $name)?;
            // SAFETY: a filesystem of this table, C strings, places for numbers and a status.
            self.status.call(|status| unsafe { operation(&*self.filesystem, $($value,)* status) })
        }
    )*};
}

/// Defines operations that return a value.
macro_rules! questions {
    ($($name:ident: $answer:ty),*) => {$(
        #[doc = concat!("Calls `", stringify!($name), "`.")]
        pub fn $name(&self, path: &CStr) -> CallResult<'_, $answer> {
            let operation = slot!(self, ops, $name)?;
            let mut answer = Default::default();
            // SAFETY: a filesystem of this table, a C string and a status.
            let call = |status| unsafe { answer = operation(&*self.filesystem, path.as_ptr(), status) };
            self.status.call(call)?;
            Ok(answer)
        }
    )*};
}

impl Filesystem {
    /// Calls `TF_InitPlugin`, and `init` of the filesystem of `scheme`, or of the only filesystem.
    pub fn load(library: Library, scheme: Option<&str>) -> Result<Self, String> {
        let init = library.symbol(c"TF_InitPlugin");
        let init = init.ok_or("the plugin exports no TF_InitPlugin")?;
        let mut info = TF_FilesystemPluginInfo::default();
        // SAFETY: the type that the header gives to the function of this name, which fills in a zeroed struct.
        unsafe {
            let init: TF_InitPluginFn = transmute(init);
            init(&raw mut info);
        }
        let free = info.plugin_memory_free.ok_or("there is no plugin_memory_free")?;
        let mut all = (0..info.num_schemes).map(|index| {
            // SAFETY: the plugin says that there are `num_schemes` of them.
            unsafe { &*info.ops.add(index) }
        });
        // SAFETY: the scheme is a string of the plugin's, or null.
        let named =
            |ops: &&TF_FilesystemPluginOps| unsafe { text(ops.scheme) }.as_deref() == scheme;
        let offer = if scheme.is_some() { all.find(named) } else { all.next() };
        let offer = offer.ok_or("the plugin does not offer the scheme any more")?;
        // SAFETY: the plugin gives the size of each table.
        let mut fs = unsafe {
            Self {
                ops: copied_operations(offer.filesystem_ops, offer.filesystem_ops_size),
                readers: copied(offer.random_access_file_ops, offer.random_access_file_ops_size),
                writers: copied(offer.writable_file_ops, offer.writable_file_ops_size),
                regions: copied(
                    offer.read_only_memory_region_ops,
                    offer.read_only_memory_region_ops_size,
                ),
                status: Status::new()?,
                free,
                filesystem: Box::new(TF_Filesystem { plugin_filesystem: ptr::null_mut() }),
            }
        };
        let init = fs.ops.init.ok_or("there is no `init`")?;
        // SAFETY: a filesystem without a state yet, and a status.
        let done = fs.status.call(|status| unsafe { init(&mut *fs.filesystem, status) });
        done.map_err(|why| format!("`init` failed: {why}"))?;
        Ok(fs)
    }

    operations! {
        path_exists(path) = (path.as_ptr());
        create_dir(path) = (path.as_ptr());
        delete_dir(path) = (path.as_ptr());
        delete_file(path) = (path.as_ptr());
        delete_recursively(path) = (path.as_ptr(), &mut 0, &mut 0);
        rename_file(from, to) = (from.as_ptr(), to.as_ptr());
        copy_file(from, to) = (from.as_ptr(), to.as_ptr());
    }
    questions!(is_directory: bool, get_file_size: i64);

    /// Calls `get_children`, passes each name to `visit` and frees it as TensorFlow does. Returns the number of names.
    pub fn get_children(&self, path: &CStr, visit: impl FnMut(&CStr)) -> CallResult<'_, usize> {
        self.list(slot!(self, ops, get_children)?, path, visit)
    }

    /// Calls `get_matching_paths`, and does the same as [`get_children`](Self::get_children).
    pub fn get_matching_paths(
        &self,
        path: &CStr,
        visit: impl FnMut(&CStr),
    ) -> CallResult<'_, usize> {
        self.list(slot!(self, ops, get_matching_paths)?, path, visit)
    }

    /// Calls `translate_name`, passes the name to `visit` and frees it as TensorFlow does.
    pub fn translate_name<T>(
        &self,
        uri: &CStr,
        visit: impl FnOnce(&CStr) -> T,
    ) -> CallResult<'_, T> {
        let translate = slot!(self, ops, translate_name)?;
        // SAFETY: a filesystem of this table and a C string; a name that is not null is a C string from the plugin's
        // allocator.
        unsafe {
            let name = translate(&*self.filesystem, uri.as_ptr());
            if name.is_null() {
                return Err(CallError::Wrong(format!("translate_name of {uri:?} is null")));
            }
            let seen = visit(CStr::from_ptr(name));
            (self.free)(name.cast());
            Ok(seen)
        }
    }

    /// Calls `stat`.
    pub fn stat(&self, path: &CStr) -> CallResult<'_, TF_FileStatistics> {
        self.filled(slot!(self, ops, stat)?, path, TF_FileStatistics::default())
    }

    /// Calls an operation whose last argument before the status is a place for its result.
    fn filled<T>(&self, operation: Filling<T>, path: &CStr, mut answer: T) -> CallResult<'_, T> {
        // SAFETY: a filesystem of this table, a C string, a place for the answer without a state yet and a status.
        self.status.call(|status| unsafe {
            operation(&*self.filesystem, path.as_ptr(), &raw mut answer, status);
        })?;
        Ok(answer)
    }

    fn list(
        &self,
        op: TF_ListOp,
        path: &CStr,
        mut visit: impl FnMut(&CStr),
    ) -> CallResult<'_, usize> {
        let mut entries: *mut *mut c_char = ptr::null_mut();
        let mut count = 0;
        // SAFETY: a filesystem of this table, a C string, a place for the answer and a status.
        let done = self.status.call(|status| unsafe {
            count = op(&*self.filesystem, path.as_ptr(), &raw mut entries, status);
        });
        let count = usize::try_from(count);
        if let Ok(count) = count {
            // SAFETY: an array of `count` C strings, all from the plugin's allocator.
            unsafe {
                for index in 0..count {
                    let name = *entries.add(index);
                    visit(CStr::from_ptr(name));
                    (self.free)(name.cast());
                }
                (self.free)(entries.cast());
            }
        }
        done?;
        count.map_err(|_| CallError::Wrong("-1 with OK".to_owned()))
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &CStr) -> CallResult<'_, Reader<'_>> {
        let file = TF_RandomAccessFile { plugin_file: ptr::null_mut() };
        Ok(Reader(self, self.filled(slot!(self, ops, new_random_access_file)?, path, file)?))
    }

    /// Opens a file for writing, with its present content if `keep` is set, else empty.
    pub fn create(&self, path: &CStr, keep: bool) -> CallResult<'_, Writer<'_>> {
        let create = match keep {
            true => slot!(self, ops, new_appendable_file)?,
            false => slot!(self, ops, new_writable_file)?,
        };
        let file = TF_WritableFile { plugin_file: ptr::null_mut() };
        Ok(Writer(self, self.filled(create, path, file)?))
    }

    /// Writes a file that consists of so many blocks.
    pub fn write(&self, path: &CStr, blocks: usize, block: &[u8]) -> CallResult<'_> {
        let mut file = self.create(path, false)?;
        for _ in 0..blocks {
            file.append(block)?;
        }
        file.close()
    }

    /// Maps a file and calls the functions that TensorFlow calls; returns the length.
    pub fn map(&self, path: &CStr) -> CallResult<'_, u64> {
        let map = slot!(self, ops, new_read_only_memory_region_from_file)?;
        let region = TF_ReadOnlyMemoryRegion { plugin_memory_region: ptr::null_mut() };
        let mut region = self.filled(map, path, region)?;
        let (data, length) = (slot!(self, regions, data)?, slot!(self, regions, length)?);
        let cleanup = slot!(self, regions, cleanup)?;
        // SAFETY: a region of this table, which is not used after the last call.
        unsafe {
            let length = length(&raw const region);
            std::hint::black_box(data(&raw const region));
            cleanup(&raw mut region);
            Ok(length)
        }
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        if let Some(cleanup) = self.ops.cleanup {
            // SAFETY: a filesystem of this table, for the last time; files borrow it.
            unsafe { cleanup(&raw mut *self.filesystem) };
        }
    }
}

/// A file that is open for reading; dropping it calls `cleanup`.
#[derive(Debug)]
pub struct Reader<'f>(&'f Filesystem, TF_RandomAccessFile);

impl<'f> Reader<'f> {
    /// Calls `read`; returns the slot's result, and that of the status.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> (i64, CallResult<'f>) {
        let read = match slot!(self.0, readers, read) {
            Ok(read) => read,
            Err(missing) => return (-1, Err(missing)),
        };
        let (n, to) = (buffer.len(), buffer.as_mut_ptr().cast());
        let mut answer = 0;
        // SAFETY: a file of this table, a buffer of `n` bytes and a status.
        let call = |status| unsafe { answer = read(&raw const self.1, offset, n, to, status) };
        let done = self.0.status.call(call);
        (answer, done)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.0.readers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&raw mut self.1) };
        }
    }
}

/// A file that is open for writing; dropping it calls `cleanup`.
#[derive(Debug)]
pub struct Writer<'f>(&'f Filesystem, TF_WritableFile);

/// Defines operations without arguments.
macro_rules! writer_operations {
    ($($name:ident),*) => {$(
        #[doc = concat!("Calls `", stringify!($name), "`.")]
        pub fn $name(&mut self) -> CallResult<'f> {
            let operation = slot!(self.0, writers, $name)?;
            // SAFETY: a file of this table and a status.
            self.0.status.call(|status| unsafe { operation(&raw const self.1, status) })
        }
    )*};
}

impl<'f> Writer<'f> {
    writer_operations!(flush, sync, close);

    /// Calls `append`.
    pub fn append(&mut self, data: &[u8]) -> CallResult<'f> {
        let append = slot!(self.0, writers, append)?;
        let (from, n) = (data.as_ptr().cast(), data.len());
        // SAFETY: a file of this table, `n` readable bytes and a status.
        self.0.status.call(|status| unsafe { append(&raw const self.1, from, n, status) })
    }

    /// Calls `tell`.
    pub fn tell(&mut self) -> CallResult<'f, i64> {
        let tell = slot!(self.0, writers, tell)?;
        let mut answer = 0;
        // SAFETY: a file of this table and a status.
        self.0.status.call(|status| unsafe { answer = tell(&raw const self.1, status) })?;
        Ok(answer)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.0.writers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&raw mut self.1) };
        }
    }
}
