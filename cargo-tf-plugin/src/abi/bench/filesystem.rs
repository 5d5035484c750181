//! Filesystems: their tables, called as TensorFlow calls them, and the rows.

use std::ffi::{CStr, CString, c_char};
use std::mem::transmute;
use std::ptr;
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Event, Job, Timing, bytes};
use cargo_tf_plugin::tables::{self, Missing};
use tf_fs_sys::*;

use super::super::load::Library;
use super::super::standins::{Status, text};
use super::{Result, Rows, Why, answered, stopped, tell};

/// The file that is read.
const SIZE: usize = 16 << 20;

/// The entries of the directory that is listed.
const ENTRIES: usize = 1000;

/// A file that is appended to becomes no longer than this.
const LONGEST: usize = 64 << 20;

/// Operations in a sample that need as many files or directories.
const FILES: u64 = 64;

/// Operations in a sample that need nothing.
const ANY: u64 = 1 << 20;

/// Measures the filesystem of `scheme`.
pub(super) fn run(library: &Library, scheme: &str, job: &Job) -> Result<()> {
    let fs = Filesystem::load(library, scheme)?;
    if job.clean {
        for directory in &job.directories {
            fs.remove(directory);
        }
        return Ok(());
    }
    if let Some(file) = &job.file {
        let path = fs.path(file)?;
        let length = fs.stat(&path).map_err(|why| Why::Failed(format!("{file}: {why}")))?.length;
        let length = usize::try_from(length).unwrap_or(0);
        let place = Place::File { uri: file.clone(), length };
        return Bench { fs: &fs, place }.rows(&mut Rows::new(job));
    }
    let directory = fs.directory(job)?;
    let place = Place::Directory(directory.clone());
    let measured = Bench { fs: &fs, place }.rows(&mut Rows::new(job));
    fs.remove(&directory);
    measured
}

/// A table, copied as TensorFlow copies it: no more than the plugin says that there is.
unsafe fn copied<T: Default>(table: *const T, size: usize) -> T {
    let mut copy = T::default();
    if !table.is_null() {
        let size = size.min(size_of::<T>());
        // SAFETY: the caller's table, of this size, and the tables are function pointers, which may be null.
        unsafe { ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut copy).cast(), size) };
    }
    copy
}

/// A filesystem's operations in either layout.
unsafe fn copied_operations(table: *const TF_FilesystemOps, size: usize) -> TF_FilesystemOps {
    if !table.is_null() && size == size_of::<TF_FilesystemOpsWithoutTransactions>() {
        // SAFETY: the caller's table, whose layout the size tells.
        return unsafe { table.cast::<TF_FilesystemOpsWithoutTransactions>().read() }.into();
    }
    // SAFETY: the caller's table, of this size.
    unsafe { copied(table, size) }
}

/// A filesystem that the plugin has registered.
struct Filesystem {
    ops: TF_FilesystemOps,
    readers: TF_RandomAccessFileOps,
    writers: TF_WritableFileOps,
    regions: TF_ReadOnlyMemoryRegionOps,
    free: unsafe extern "C" fn(*mut std::ffi::c_void),
    filesystem: Box<TF_Filesystem>,
}

/// The function of a slot, or why there is none.
macro_rules! slot {
    ($fs:expr, $table:ident, $name:ident) => {
        $fs.$table.$name.ok_or_else(|| absent(stringify!($table), stringify!($name)))
    };
}

fn absent(table: &str, name: &str) -> Why {
    let table = match table {
        "readers" => tables::RANDOM_ACCESS_FILE.0,
        "writers" => tables::WRITABLE_FILE.0,
        "regions" => tables::MEMORY_REGION.0,
        _ => tables::FILESYSTEM.0,
    };
    Why::Absent(match tables::missing(table, name) {
        Missing::Default(what) => format!("not implemented: TensorFlow {what}"),
        _ => "not implemented: TensorFlow returns UNIMPLEMENTED".to_owned(),
    })
}

fn c(path: &str) -> Result<CString> {
    CString::new(path).map_err(|_| Why::Failed(format!("`{path}` has a NUL in it")))
}

impl Filesystem {
    fn load(library: &Library, scheme: &str) -> Result<Self> {
        let failed = |why: &str| Why::Failed(why.to_owned());
        let init = library.symbol(c"TF_InitPlugin");
        let init = init.ok_or_else(|| failed("the plugin exports no TF_InitPlugin"))?;
        // SAFETY: the type that the header gives to the function of this name, and zeros are a value of its struct.
        let info = unsafe {
            let init: TF_InitPluginFn = transmute(init);
            let mut info: TF_FilesystemPluginInfo = std::mem::zeroed();
            init(&raw mut info);
            info
        };
        let free =
            info.plugin_memory_free.ok_or_else(|| failed("there is no plugin_memory_free"))?;
        // SAFETY: the plugin says that there are so many.
        let all = unsafe { std::slice::from_raw_parts(info.ops, info.num_schemes) };
        // SAFETY: strings of the plugin's, or null.
        let found = all.iter().find(|ops| unsafe { text(ops.scheme) }.as_deref() == Some(scheme));
        let found = found.ok_or_else(|| failed("the plugin does not offer the scheme any more"))?;
        // SAFETY: tables of the sizes that the plugin gives.
        let mut fs = unsafe {
            Self {
                ops: copied_operations(found.filesystem_ops, found.filesystem_ops_size),
                readers: copied(found.random_access_file_ops, found.random_access_file_ops_size),
                writers: copied(found.writable_file_ops, found.writable_file_ops_size),
                regions: copied(
                    found.read_only_memory_region_ops,
                    found.read_only_memory_region_ops_size,
                ),
                free,
                // For the rest of the process, as in TensorFlow.
                filesystem: Box::new(TF_Filesystem { plugin_filesystem: ptr::null_mut() }),
            }
        };
        let init = fs.ops.init.ok_or_else(|| failed("there is no `init`"))?;
        // SAFETY: a zeroed filesystem and a status.
        with_status(|status| unsafe { init(&mut *fs.filesystem, status) })
            .map_err(|why| Why::Failed(format!("`init` has answered {why}")))?;
        Ok(fs)
    }

    /// Makes the first of the directories that can be made, and writes to it.
    fn directory(&self, job: &Job) -> Result<String> {
        if self.ops.new_writable_file.is_none() {
            return Err(Why::Failed(
                "the plugin writes no files (there is no `new_writable_file`); name a file that is there with `--file \
                 URI`, then what reads is measured"
                    .to_owned(),
            ));
        }
        for directory in &job.directories {
            let path = self.path(directory)?;
            // Only what is made here may be removed: some plugins and hosts drop parts of a name.
            let refuse = |why: String| tell(&Event::Refused(directory.clone(), why));
            if self.stat(&path).is_ok() || self.path_exists(&path).is_ok() {
                refuse("it is there already".to_owned());
                continue;
            }
            tell(&Event::Directory(directory.clone()));
            match self.create_dir(&path) {
                // What has no directories needs none.
                Ok(()) | Err(Why::Absent(_)) => {}
                Err(why) => {
                    refuse(why.to_string());
                    continue;
                }
            }
            let file = self.path(&format!("{directory}/first"))?;
            match self.write(&file, 1, b"1").and_then(|()| self.delete_file(&file)) {
                Ok(()) => return Ok(directory.clone()),
                Err(why) => {
                    self.remove(directory);
                    refuse(why.to_string());
                }
            }
        }
        Err(Why::Failed("no directory can be made and written to".to_owned()))
    }

    /// A name as TensorFlow hands it to the operations.
    fn path(&self, uri: &str) -> Result<CString> {
        let given = c(uri)?;
        let Some(translate) = self.ops.translate_name else {
            // Its default takes scheme and host away.
            let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
            return c(rest.find('/').map_or("/", |at| &rest[at..]));
        };
        // SAFETY: a filesystem of this table and a C string; the answer is a C string of the plugin's allocator.
        unsafe {
            let name = translate(&*self.filesystem, given.as_ptr());
            if name.is_null() {
                return Err(Why::Failed(format!("translate_name of `{uri}` is null")));
            }
            let owned = CStr::from_ptr(name).to_owned();
            (self.free)(name.cast());
            Ok(owned)
        }
    }

    fn translate_name(&self, uri: &CStr) -> Result<()> {
        let translate = slot!(self, ops, translate_name)?;
        // SAFETY: `self.filesystem` is of this table and `uri` a C string; the plugin's hook frees the name
        // that its function returned.
        unsafe {
            let name = translate(&*self.filesystem, uri.as_ptr());
            (self.free)(name.cast());
        }
        Ok(())
    }

    fn path_op(&self, op: TF_PathOp, path: &CStr) -> Result<()> {
        // SAFETY: a filesystem of this table, a C string and a status.
        with_status(|status| unsafe { op(&*self.filesystem, path.as_ptr(), status) })
    }

    fn path_exists(&self, path: &CStr) -> Result<()> {
        self.path_op(slot!(self, ops, path_exists)?, path)
    }

    fn create_dir(&self, path: &CStr) -> Result<()> {
        self.path_op(slot!(self, ops, create_dir)?, path)
    }

    fn delete_dir(&self, path: &CStr) -> Result<()> {
        self.path_op(slot!(self, ops, delete_dir)?, path)
    }

    fn delete_file(&self, path: &CStr) -> Result<()> {
        self.path_op(slot!(self, ops, delete_file)?, path)
    }

    fn two_path_op(&self, op: TF_TwoPathOp, from: &CStr, to: &CStr) -> Result<()> {
        // SAFETY: a filesystem of this table, C strings and a status.
        with_status(|status| unsafe { op(&*self.filesystem, from.as_ptr(), to.as_ptr(), status) })
    }

    fn stat(&self, path: &CStr) -> Result<TF_FileStatistics> {
        let stat = slot!(self, ops, stat)?;
        let mut answer = TF_FileStatistics { length: 0, mtime_nsec: 0, is_directory: false };
        // SAFETY: a filesystem of this table, a C string, a place for the answer and a status.
        with_status(|status| unsafe {
            stat(&*self.filesystem, path.as_ptr(), &mut answer, status)
        })?;
        Ok(answer)
    }

    fn is_directory(&self, path: &CStr) -> Result<()> {
        let op = slot!(self, ops, is_directory)?;
        // SAFETY: a filesystem of this table, a C string and a status. The host ignores the answer as well.
        with_status(|status| unsafe {
            let _ = op(&*self.filesystem, path.as_ptr(), status);
        })
    }

    fn file_size(&self, path: &CStr) -> Result<()> {
        let op = slot!(self, ops, get_file_size)?;
        // SAFETY: `self.filesystem` is of this table, `path` a C string, and `status` is ours.
        with_status(|status| unsafe {
            let _ = op(&*self.filesystem, path.as_ptr(), status);
        })
    }

    /// How many names an operation answers with; each is handed to `visit` and freed as TensorFlow does.
    fn list(&self, op: TF_ListOp, path: &CStr, mut visit: impl FnMut(&CStr)) -> Result<usize> {
        let mut entries: *mut *mut c_char = ptr::null_mut();
        let mut count = 0;
        // SAFETY: a filesystem of this table, a C string, a place for the answer and a status.
        let done = with_status(|status| unsafe {
            count = op(&*self.filesystem, path.as_ptr(), &mut entries, status);
        });
        let count = usize::try_from(count);
        if let Ok(count) = count {
            // SAFETY: an array of as many C strings as the answer says, all of the plugin's allocator.
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
        count.map_err(|_| Why::Failed("-1 with OK".to_owned()))
    }

    fn open(&self, path: &CStr) -> Result<Reader<'_>> {
        let open = slot!(self, ops, new_random_access_file)?;
        let mut file = TF_RandomAccessFile { plugin_file: ptr::null_mut() };
        // SAFETY: a filesystem of this table, a C string, a zeroed file and a status.
        with_status(|status| unsafe { open(&*self.filesystem, path.as_ptr(), &mut file, status) })?;
        Ok(Reader(self, file))
    }

    fn create(&self, path: &CStr) -> Result<Writer<'_>> {
        let create = slot!(self, ops, new_writable_file)?;
        let mut file = TF_WritableFile { plugin_file: ptr::null_mut() };
        // SAFETY: `self.filesystem` is of this table, `path` a C string, `file` a zeroed file, and `status` a
        // status.
        with_status(|status| unsafe {
            create(&*self.filesystem, path.as_ptr(), &mut file, status)
        })?;
        Ok(Writer(self, file))
    }

    /// Maps a file and looks at what TensorFlow asks for; its length.
    fn map(&self, path: &CStr) -> Result<u64> {
        let map = slot!(self, ops, new_read_only_memory_region_from_file)?;
        let mut region = TF_ReadOnlyMemoryRegion { plugin_memory_region: ptr::null_mut() };
        // SAFETY: `self.filesystem` is of this table, `path` a C string, `region` a zeroed region, and `status`
        // a status.
        with_status(|status| unsafe {
            map(&*self.filesystem, path.as_ptr(), &mut region, status)
        })?;
        let (data, length) = (slot!(self, regions, data)?, slot!(self, regions, length)?);
        let cleanup = slot!(self, regions, cleanup)?;
        // SAFETY: a region of this table, which is not used after the last call.
        unsafe {
            let length = length(&region);
            std::hint::black_box(data(&region));
            cleanup(&mut region);
            Ok(length)
        }
    }

    /// Makes a file of so many blocks.
    fn write(&self, path: &CStr, blocks: usize, block: &[u8]) -> Result<()> {
        let mut file = self.create(path)?;
        for _ in 0..blocks {
            file.append(block)?;
        }
        file.close()
    }

    /// Removes a directory with all that is in it. It is one of this process's own.
    fn remove(&self, directory: &str) {
        let Ok(path) = self.path(directory) else { return };
        if let Some(op) = self.ops.delete_recursively {
            let (mut files, mut directories) = (0, 0);
            // SAFETY: a filesystem of this table, a C string, places for the answers and a status.
            let _ = with_status(|status| unsafe {
                op(&*self.filesystem, path.as_ptr(), &mut files, &mut directories, status);
            });
        }
        // One by one as well: what it has answered is worth less than what is there now.
        let mut problem = None;
        self.remove_below(directory, &mut problem);
        // A store without directories has none that could be there.
        let there = || self.stat(&path).is_ok() || !self.children(&path).is_empty();
        if let Some(why) = problem
            && there()
        {
            tell(&Event::Left(directory.to_owned(), why.to_string()));
        }
    }

    /// What is in a directory; nothing if that cannot be known.
    fn children(&self, path: &CStr) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(list) = self.ops.get_children {
            let _ = self.list(list, path, |name| names.push(name.to_string_lossy().into_owned()));
        }
        names.iter().filter_map(|name| own_child(name)).map(str::to_owned).collect()
    }

    fn remove_below(&self, directory: &str, problem: &mut Option<Why>) {
        let Ok(path) = self.path(directory) else { return };
        for name in self.children(&path) {
            let name = format!("{directory}/{name}");
            let Ok(path) = self.path(&name) else { continue };
            if self.stat(&path).is_ok_and(|found| found.is_directory) {
                self.remove_below(&name, problem);
            } else if let Err(why) = self.delete_file(&path) {
                problem.get_or_insert(why);
            }
        }
        if let Err(why) = self.delete_dir(&path) {
            problem.get_or_insert(why);
        }
    }
}

/// What a call with a status answers.
fn with_status(call: impl FnOnce(*mut TF_Status)) -> Result<()> {
    let mut status = Status::new();
    call((&raw mut status).cast());
    answered(&mut status)
}

struct Reader<'f>(&'f Filesystem, TF_RandomAccessFile);

impl Reader<'_> {
    fn read(&self, offset: usize, buffer: &mut [u8]) -> Result<()> {
        let read = slot!(self.0, readers, read)?;
        let (n, to) = (buffer.len(), buffer.as_mut_ptr().cast());
        let mut answer = 0;
        // SAFETY: a file of this table, a buffer of the length that is passed and a status.
        with_status(|status| unsafe { answer = read(&self.1, offset as u64, n, to, status) })?;
        if usize::try_from(answer) == Ok(n) {
            return Ok(());
        }
        Err(Why::Failed(format!("OK with {answer} of {n} bytes")))
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.0.readers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&mut self.1) };
        }
    }
}

struct Writer<'f>(&'f Filesystem, TF_WritableFile);

impl Writer<'_> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let append = slot!(self.0, writers, append)?;
        let (from, n) = (data.as_ptr().cast(), data.len());
        // SAFETY: a file of this table, as many bytes as are announced and a status.
        with_status(|status| unsafe { append(&self.1, from, n, status) })
    }

    fn sync(&mut self) -> Result<()> {
        let sync = slot!(self.0, writers, sync)?;
        // SAFETY: a file of this table and a status.
        with_status(|status| unsafe { sync(&self.1, status) })
    }

    fn flush(&mut self) -> Result<()> {
        let flush = slot!(self.0, writers, flush)?;
        // SAFETY: `self.1` is an open file of this table, and `status` is ours.
        with_status(|status| unsafe { flush(&self.1, status) })
    }

    fn close(&mut self) -> Result<()> {
        let close = slot!(self.0, writers, close)?;
        // SAFETY: `self.1` is an open file of this table, and `status` is ours.
        with_status(|status| unsafe { close(&self.1, status) })
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(cleanup) = self.0.writers.cleanup {
            // SAFETY: a file of this table, for the last time.
            unsafe { cleanup(&mut self.1) };
        }
    }
}

/// How long `call` takes, done so often.
fn repeated(times: u64, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        call()?;
    }
    Ok(start.elapsed())
}

/// How long `call` takes for each of these.
fn each(paths: &[CString], mut call: impl FnMut(&CStr) -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for path in paths {
        call(path)?;
    }
    Ok(start.elapsed())
}

/// What there is to measure with.
enum Place {
    /// A new directory of this process's own.
    Directory(String),
    /// A file that was there before, which is only read.
    File { uri: String, length: usize },
}

/// The rows, and the place that they are measured in.
struct Bench<'f> {
    fs: &'f Filesystem,
    place: Place,
}

impl Bench<'_> {
    /// A name in the directory, for what is written.
    fn uri(&self, name: &str) -> Result<String> {
        match &self.place {
            Place::Directory(directory) => Ok(format!("{directory}/{name}")),
            Place::File { .. } => {
                Err(Why::Absent("not measured: it takes a directory to write to".to_owned()))
            }
        }
    }

    fn path(&self, name: &str) -> Result<CString> {
        self.fs.path(&self.uri(name)?)
    }

    fn paths(&self, stem: &str, count: u64) -> Result<Vec<CString>> {
        (0..count).map(|number| self.path(&format!("{stem}-{number}"))).collect()
    }

    /// The directory that all is in.
    fn directory(&self) -> &str {
        match &self.place {
            Place::Directory(directory) => directory,
            Place::File { uri, .. } => uri.rsplit_once('/').map_or(uri, |(directory, _)| directory),
        }
    }

    /// A file of this size at least, made at its first use; and its size.
    fn file(&self, size: usize) -> Result<(CString, usize)> {
        if let Place::File { uri, length } = &self.place {
            if *length < size {
                let why =
                    format!("not measured: the file has {length} bytes, and this takes {size}");
                return Err(Why::Absent(why));
            }
            return Ok((self.fs.path(uri)?, *length));
        }
        let path = self.path(&format!("file-{size}"))?;
        if self.fs.stat(&path).is_ok() {
            return Ok((path, size));
        }
        let block = vec![7; size.clamp(1, 1 << 20)];
        match self.fs.write(&path, size / block.len(), &block) {
            Ok(()) => Ok((path, size)),
            Err(Why::Failed(why)) => {
                Err(Why::Failed(format!("a file to read cannot be made: {why}")))
            }
            Err(why) => Err(why),
        }
    }

    /// A file to read blocks of this size from; the size of all that is read of it.
    fn large_file(&self, block: usize) -> Result<(CString, usize)> {
        let (path, length) = match self.place {
            Place::Directory(_) => self.file(SIZE)?,
            Place::File { .. } => self.file(block)?,
        };
        Ok((path, length.min(SIZE)))
    }

    fn rows(&self, rows: &mut Rows<'_>) -> Result<()> {
        rows.group("Names and metadata");
        self.names(rows)?;
        rows.group("Reading");
        self.reading(rows)?;
        if matches!(self.place, Place::File { .. }) {
            return Ok(());
        }
        rows.group("Writing");
        self.writing(rows)?;
        rows.group("Files and directories");
        self.directories(rows)
    }

    fn names(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        rows.row("translate_name", None, || {
            let uri = c(&format!("{}/some/file", self.directory()))?;
            rows.time(ANY, |times| repeated(times, || fs.translate_name(&uri)))
        })?;
        rows.row("path_exists, of a file", None, || {
            slot!(fs, ops, path_exists)?;
            let (path, _) = self.file(1)?;
            rows.time(ANY, |times| repeated(times, || fs.path_exists(&path)))
        })?;
        rows.row("path_exists, of nothing", None, || {
            let op = slot!(fs, ops, path_exists)?;
            let path = fs.path(&format!("{}/tf-plugin-bench-nothing", self.directory()))?;
            rows.time(ANY, |times| {
                repeated(times, || match fs.path_op(op, &path) {
                    Err(Why::Failed(why)) if why.starts_with("NOT_FOUND") => Ok(()),
                    Ok(()) => Err(Why::Failed("OK, instead of NOT_FOUND".to_owned())),
                    other => other,
                })
            })
        })?;
        rows.row("stat, of a file", None, || {
            slot!(fs, ops, stat)?;
            let (path, _) = self.file(1)?;
            rows.time(ANY, |times| repeated(times, || fs.stat(&path).map(drop)))
        })?;
        rows.row("get_file_size", None, || {
            slot!(fs, ops, get_file_size)?;
            let (path, _) = self.file(1)?;
            rows.time(ANY, |times| repeated(times, || fs.file_size(&path)))
        })?;
        rows.row("is_directory, of a directory", None, || {
            slot!(fs, ops, is_directory)?;
            let path = fs.path(self.directory())?;
            rows.time(ANY, |times| repeated(times, || fs.is_directory(&path)))
        })
    }

    fn reading(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        rows.row("open and close", None, || {
            slot!(fs, ops, new_random_access_file)?;
            let (path, _) = self.file(1)?;
            rows.time(ANY, |times| repeated(times, || fs.open(&path).map(drop)))
        })?;
        for (how, random) in [("in order", false), ("anywhere", true)] {
            for size in [16, 4 << 10, 256 << 10, 1 << 20] {
                let name = format!("read {} {how}", bytes(size as u64));
                rows.row(name, Some(size as u64), || {
                    slot!(fs, ops, new_random_access_file)?;
                    slot!(fs, readers, read)?;
                    let (path, length) = self.large_file(size)?;
                    let file = fs.open(&path)?;
                    let mut buffer = vec![0; size];
                    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
                    let mut at = 0;
                    let blocks = length / size;
                    rows.time(ANY, |times| {
                        repeated(times, || {
                            if random {
                                // xorshift: any numbers will do.
                                state ^= state << 13;
                                state ^= state >> 7;
                                state ^= state << 17;
                                at = (state % blocks as u64) as usize;
                            } else {
                                at = (at + 1) % blocks;
                            }
                            file.read(at * size, &mut buffer)
                        })
                    })
                })?;
            }
        }
        rows.row(format!("map {} as a memory region", bytes(SIZE as u64)), None, || {
            slot!(fs, ops, new_read_only_memory_region_from_file)?;
            let (path, _) = self.file(SIZE)?;
            rows.time(ANY, |times| repeated(times, || fs.map(&path).map(drop)))
        })
    }

    fn writing(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        for size in [100, 64 << 10, 1 << 20] {
            rows.row(format!("append {}", bytes(size as u64)), Some(size as u64), || {
                slot!(fs, ops, new_writable_file)?;
                slot!(fs, writers, append)?;
                let (path, block) = (self.path("appended")?, vec![7; size]);
                let mut file = fs.create(&path)?;
                let mut length = 0;
                let timing = rows.time((LONGEST / size) as u64, |times| {
                    // Begun anew, so that no disk and no memory is filled.
                    if length + size * times as usize > LONGEST {
                        file.close()?;
                        file = fs.create(&path)?;
                        length = 0;
                    }
                    length += size * times as usize;
                    repeated(times, || file.append(&block))
                });
                let _ = file.close();
                drop(file);
                let _ = fs.delete_file(&path);
                timing
            })?;
        }
        for (name, syncs) in [("flush, after 100 B", false), ("sync, after 100 B", true)] {
            rows.row(name, None, || {
                slot!(fs, ops, new_writable_file)?;
                let path = self.path("flushed")?;
                let mut file = fs.create(&path)?;
                let timing = rows.time(FILES, |times| {
                    let mut took = Duration::ZERO;
                    for _ in 0..times {
                        file.append(&[7; 100])?;
                        took += repeated(1, || if syncs { file.sync() } else { file.flush() })?;
                    }
                    Ok(took)
                });
                let _ = file.close();
                drop(file);
                let _ = fs.delete_file(&path);
                timing
            })?;
        }
        rows.row("close, after 100 B", None, || {
            slot!(fs, writers, close)?;
            let path = self.path("closed")?;
            let timing = rows.time(FILES, |times| {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    let mut file = fs.create(&path)?;
                    file.append(&[7; 100])?;
                    took += repeated(1, || file.close())?;
                }
                Ok(took)
            });
            let _ = fs.delete_file(&path);
            timing
        })?;
        for size in [4 << 10, 1 << 20] {
            let name = format!("a file of {}: new, append, close", bytes(size as u64));
            rows.row(name, Some(size as u64), || {
                let (path, block) = (self.path("whole")?, vec![7; size]);
                let timing = rows.time(ANY, |times| repeated(times, || fs.write(&path, 1, &block)));
                let _ = fs.delete_file(&path);
                timing
            })?;
        }
        Ok(())
    }

    fn directories(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        rows.row("new_writable_file and close", None, || {
            self.made_and_removed(
                rows,
                true,
                |path| fs.create(path)?.close(),
                |path| fs.delete_file(path),
            )
        })?;
        rows.row("delete_file", None, || {
            slot!(fs, ops, delete_file)?;
            self.made_and_removed(
                rows,
                false,
                |path| fs.create(path)?.close(),
                |path| fs.delete_file(path),
            )
        })?;
        rows.row("create_dir", None, || {
            slot!(fs, ops, create_dir)?;
            self.made_and_removed(
                rows,
                true,
                |path| fs.create_dir(path),
                |path| fs.delete_dir(path),
            )
        })?;
        rows.row("delete_dir", None, || {
            slot!(fs, ops, delete_dir)?;
            self.made_and_removed(
                rows,
                false,
                |path| fs.create_dir(path),
                |path| fs.delete_dir(path),
            )
        })?;
        rows.row("rename_file", None, || {
            let op = slot!(fs, ops, rename_file)?;
            let mut names = [self.path("renamed-a")?, self.path("renamed-b")?];
            fs.write(&names[0], 1, &[7; 4096])?;
            let timing = rows.time(FILES, |times| {
                repeated(times, || {
                    fs.two_path_op(op, &names[0], &names[1])?;
                    names.swap(0, 1);
                    Ok(())
                })
            });
            let _ = fs.delete_file(&names[0]);
            timing
        })?;
        for size in [4 << 10, 1 << 20] {
            rows.row(format!("copy_file of {}", bytes(size as u64)), Some(size as u64), || {
                let op = slot!(fs, ops, copy_file)?;
                let (to, (from, _)) = (self.path("copied")?, self.file(size)?);
                let timing =
                    rows.time(FILES, |times| repeated(times, || fs.two_path_op(op, &from, &to)));
                let _ = fs.delete_file(&to);
                timing
            })?;
        }
        rows.row("get_children of 1,000", None, || {
            let op = slot!(fs, ops, get_children)?;
            let list = self.entries()?;
            rows.time(ANY, |times| repeated(times, || expect(fs.list(op, &list, |_| {})?, ENTRIES)))
        })?;
        rows.row("get_matching_paths, 100 of 1,000", None, || {
            let op = slot!(fs, ops, get_matching_paths)?;
            self.entries()?;
            // A pattern is not translated.
            let pattern = c(&self.uri("list/*7")?)?;
            rows.time(ANY, |times| {
                repeated(times, || expect(fs.list(op, &pattern, |_| {})?, ENTRIES / 10))
            })
        })
    }

    /// Times one of two operations that undo each other.
    fn made_and_removed(
        &self,
        rows: &Rows<'_>,
        make_is_timed: bool,
        make: impl Fn(&CStr) -> Result<()>,
        remove: impl Fn(&CStr) -> Result<()>,
    ) -> Result<Timing> {
        let paths = self.paths("made", FILES)?;
        rows.time(FILES, |times| {
            let paths = &paths[..times as usize];
            let made = each(paths, &make)?;
            let removed = each(paths, &remove)?;
            Ok(if make_is_timed { made } else { removed })
        })
    }

    /// The directory that is listed, filled unless it is full already.
    fn entries(&self) -> Result<CString> {
        let failed = |why: Why| match why {
            Why::Failed(why) => Why::Failed(format!("{ENTRIES} files cannot be made: {why}")),
            other => other,
        };
        let last = self.path(&format!("list/file-{}", ENTRIES - 1))?;
        let list = self.path("list")?;
        if self.fs.stat(&last).is_ok() {
            return Ok(list);
        }
        if self.fs.ops.create_dir.is_some() {
            self.fs.create_dir(&list).map_err(failed)?;
        }
        for number in 0..ENTRIES {
            if stopped() {
                return Err(Why::Stopped);
            }
            self.fs.write(&self.path(&format!("list/file-{number}"))?, 1, b"7").map_err(failed)?;
        }
        Ok(list)
    }
}

fn expect(found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Why::Failed(format!("{found} names, and there are {wanted}")))
}

/// A name that a listing has, if it can only be below the directory: a plugin that is being written may also list `..`.
fn own_child(name: &str) -> Option<&str> {
    let name = name.trim_end_matches('/');
    name.split('/').all(|part| !["", ".", ".."].contains(&part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::own_child;

    #[test]
    fn nothing_outside_of_a_directory_is_a_child() {
        for (name, child) in
            [("a", "a"), ("a/", "a"), ("list/file-3", "list/file-3"), ("..a", "..a")]
        {
            assert_eq!(own_child(name), Some(child));
        }
        for name in ["", ".", "..", "../x", "/etc", "a/../..", "a//b", "/"] {
            assert_eq!(own_child(name), None, "{name}");
        }
    }
}
