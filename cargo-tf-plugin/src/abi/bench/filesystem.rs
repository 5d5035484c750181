//! Filesystems: the rows, and the directory in which they are measured.

use std::ffi::{CStr, CString};
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Job, bytes};
use cargo_tf_plugin::host::{CallError, CallResult, Filesystem, Library};
use cargo_tf_plugin::tables;
use tf_fs_sys::TF_NOT_FOUND;

use super::rows::{Result, RowError, Rows, repeated, stopped};
use super::scratch::{c, directory, path, remove};

const SIZE: usize = 16 << 20;

/// The entries of the directory that is listed.
const ENTRIES: usize = 1000;

/// The length up to which a file is appended to.
const LONGEST: usize = 64 << 20;

/// Operations in a sample that need a file or directory each.
const FILES: u64 = 64;

/// Operations in a sample that need none.
const ANY: u64 = 1 << 20;

pub(super) fn run(library: Library, scheme: &str, job: &Job) -> Result<()> {
    // For the rest of the process, as in TensorFlow.
    let fs = Filesystem::load(library, Some(scheme)).map_err(RowError::Failed)?;
    let fs: &'static Filesystem = Box::leak(Box::new(fs));
    if job.clean {
        for directory in &job.directories {
            remove(fs, directory);
        }
        return Ok(());
    }
    if let Some(file) = &job.file {
        let path = path(fs, file)?;
        let statistics =
            fs.stat(&path).map_err(|why| RowError::Failed(format!("{file}: {why}")))?;
        let length = usize::try_from(statistics.length).unwrap_or(0);
        let directory = file.rsplit_once('/').map_or(&**file, |(directory, _)| directory);
        let (directory, file) = (directory.to_owned(), Some((file.clone(), length)));
        return Bench { fs, directory, file }.rows(&mut Rows::new(job));
    }
    let bench = Bench { fs, directory: directory(fs, job)?, file: None };
    let measured = bench.rows(&mut Rows::new(job));
    remove(fs, &bench.directory);
    measured
}

/// Calls `call` for each of these paths, and returns how long that took.
fn each<'f>(paths: &[CString], mut call: impl FnMut(&CStr) -> CallResult<'f>) -> Result<Duration> {
    let start = Instant::now();
    for path in paths {
        call(path)?;
    }
    Ok(start.elapsed())
}

/// The rows, and the directory in which they are measured.
struct Bench<'f> {
    fs: &'f Filesystem,
    /// The directory of all files: a new one of this process, or that of `file`.
    directory: String,
    /// An existing file, which is only read, and its length.
    file: Option<(String, usize)>,
}

impl<'f> Bench<'f> {
    /// Returns a name in the directory for a file that is written.
    fn uri(&self, name: &str) -> Result<String> {
        match &self.file {
            None => Ok(format!("{}/{name}", self.directory)),
            Some(_) => {
                Err(RowError::Absent("not measured: it takes a directory to write to".to_owned()))
            }
        }
    }

    fn path(&self, name: &str) -> Result<CString> {
        path(self.fs, &self.uri(name)?)
    }

    /// Returns a file of at least this size, which is created on first use; and its size.
    fn file(&self, size: usize) -> Result<(CString, usize)> {
        if let Some((uri, length)) = &self.file {
            if *length < size {
                let why =
                    format!("not measured: the file has {length} bytes, and this takes {size}");
                return Err(RowError::Absent(why));
            }
            return Ok((path(self.fs, uri)?, *length));
        }
        let path = self.path(&format!("file-{size}"))?;
        if self.fs.stat(&path).is_ok() {
            return Ok((path, size));
        }
        let block = vec![7; size.clamp(1, 1 << 20)];
        match self.fs.write(&path, size / block.len(), &block).map_err(RowError::from) {
            Ok(()) => Ok((path, size)),
            Err(RowError::Failed(why)) => {
                Err(RowError::Failed(format!("cannot create a file to read: {why}")))
            }
            Err(why) => Err(why),
        }
    }

    fn rows(&self, rows: &mut Rows<'_>) -> Result<()> {
        rows.group("Names and metadata");
        self.names(rows)?;
        rows.group("Reading");
        self.reading(rows)?;
        if self.file.is_some() {
            return Ok(());
        }
        rows.group("Writing");
        self.writing(rows)?;
        rows.group("Files and directories");
        self.directories(rows)
    }

    /// Measures an operation on a small file.
    fn row_of_a_file(
        &self,
        rows: &Rows<'_>,
        name: &str,
        call: impl Fn(&CStr) -> CallResult<'f>,
    ) -> Result<()> {
        rows.row(name, None, || {
            let (path, _) = self.file(1)?;
            rows.repeat(ANY, || call(&path))
        })
    }

    fn names(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        rows.row("translate_name", None, || {
            let uri = c(&format!("{}/some/file", self.directory))?;
            rows.repeat(ANY, || fs.translate_name(&uri, |_| ()))
        })?;
        self.row_of_a_file(rows, "path_exists, of a file", |path| fs.path_exists(path))?;
        rows.row("path_exists, of nothing", None, || {
            let path = path(fs, &format!("{}/tf-plugin-bench-nothing", self.directory))?;
            rows.repeat(ANY, || match fs.path_exists(&path) {
                Err(CallError::Status(status)) if status.code() == TF_NOT_FOUND => Ok(()),
                Ok(()) => Err(CallError::Wrong("OK, instead of NOT_FOUND".to_owned())),
                other => other,
            })
        })?;
        self.row_of_a_file(rows, "stat, of a file", |path| fs.stat(path).map(drop))?;
        self.row_of_a_file(rows, "get_file_size", |path| fs.get_file_size(path).map(drop))?;
        rows.row("is_directory, of a directory", None, || {
            let path = path(fs, &self.directory)?;
            rows.repeat(ANY, || fs.is_directory(&path).map(drop))
        })
    }

    fn reading(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        self.row_of_a_file(rows, "open and close", |path| fs.open(path).map(drop))?;
        for (how, random) in [("in order", false), ("anywhere", true)] {
            for size in [16, 4 << 10, 256 << 10, 1 << 20] {
                let name = format!("read {} {how}", bytes(size as u64));
                rows.row(name, Some(size as u64), || {
                    let needed = if self.file.is_some() { size } else { SIZE };
                    let (path, length) = self.file(needed)?;
                    let file = fs.open(&path)?;
                    let mut buffer = vec![0; size];
                    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
                    let mut at = 0;
                    let blocks = length.min(SIZE) / size;
                    rows.repeat(ANY, || {
                        if random {
                            // xorshift: any numbers will do.
                            state ^= state << 13;
                            state ^= state >> 7;
                            state ^= state << 17;
                            at = (state % blocks as u64) as usize;
                        } else {
                            at = (at + 1) % blocks;
                        }
                        match file.read((at * size) as u64, &mut buffer) {
                            (n, Ok(())) if usize::try_from(n) != Ok(size) => {
                                Err(CallError::Wrong(format!("OK with {n} of {size} bytes")))
                            }
                            (_, done) => done,
                        }
                    })
                })?;
            }
        }
        rows.row(format!("map {} as a memory region", bytes(SIZE as u64)), None, || {
            let (path, _) = self.file(SIZE)?;
            rows.repeat(ANY, || fs.map(&path).map(drop))
        })
    }

    fn writing(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        for size in [100, 64 << 10, 1 << 20] {
            rows.row(format!("append {}", bytes(size as u64)), Some(size as u64), || {
                let (path, block) = (self.path("appended")?, vec![7; size]);
                let mut file = fs.create(&path, false)?;
                let mut length = 0;
                let timing = rows.time((LONGEST / size) as u64, |times| {
                    // The file is replaced when it is long, so that no disk and no memory is filled.
                    if length + size * times as usize > LONGEST {
                        file.close()?;
                        file = fs.create(&path, false)?;
                        length = 0;
                    }
                    length += size * times as usize;
                    repeated(times, || file.append(&block))
                })?;
                file.close()?;
                Ok(timing)
            })?;
        }
        for (name, syncs) in [("flush, after 100 B", false), ("sync, after 100 B", true)] {
            rows.row(name, None, || {
                let path = self.path("flushed")?;
                let mut file = fs.create(&path, false)?;
                let timing = rows.time(FILES, |times| {
                    let mut took = Duration::ZERO;
                    for _ in 0..times {
                        file.append(&[7; 100])?;
                        took += repeated(1, || if syncs { file.sync() } else { file.flush() })?;
                    }
                    Ok(took)
                })?;
                file.close()?;
                Ok(timing)
            })?;
        }
        rows.row("close, after 100 B", None, || {
            let path = self.path("closed")?;
            rows.time(FILES, |times| {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    let mut file = fs.create(&path, false)?;
                    file.append(&[7; 100])?;
                    took += repeated(1, || file.close())?;
                }
                Ok(took)
            })
        })?;
        for size in [4 << 10, 1 << 20] {
            let name = format!("a file of {}: new, append, close", bytes(size as u64));
            rows.row(name, Some(size as u64), || {
                let (path, block) = (self.path("whole")?, vec![7; size]);
                rows.repeat(ANY, || fs.write(&path, 1, &block))
            })?;
        }
        Ok(())
    }

    fn directories(&self, rows: &Rows<'_>) -> Result<()> {
        let fs = self.fs;
        self.made_and_removed(
            rows,
            ["new_writable_file and close", "delete_file"],
            |path| fs.create(path, false)?.close(),
            |path| fs.delete_file(path),
        )?;
        let (make, remove) = (|path: &CStr| fs.create_dir(path), |path: &CStr| fs.delete_dir(path));
        self.made_and_removed(rows, ["create_dir", "delete_dir"], make, remove)?;
        rows.row("rename_file", None, || {
            let mut names = [self.path("renamed-a")?, self.path("renamed-b")?];
            fs.write(&names[0], 1, &[7; 4096])?;
            rows.repeat(FILES, || {
                fs.rename_file(&names[0], &names[1])?;
                names.swap(0, 1);
                Ok(())
            })
        })?;
        for size in [4 << 10, 1 << 20] {
            rows.row(format!("copy_file of {}", bytes(size as u64)), Some(size as u64), || {
                let (to, (from, _)) = (self.path("copied")?, self.file(size)?);
                rows.repeat(FILES, || fs.copy_file(&from, &to))
            })?;
        }
        rows.row("get_children of 1,000", None, || {
            let list = self.entries("get_children", fs.ops.get_children.is_some())?;
            rows.repeat(ANY, || expect(fs.get_children(&list, |_| {})?, ENTRIES))
        })?;
        rows.row("get_matching_paths, 100 of 1,000", None, || {
            self.entries("get_matching_paths", fs.ops.get_matching_paths.is_some())?;
            // A pattern is not translated.
            let pattern = c(&self.uri("list/*7")?)?;
            rows.repeat(ANY, || expect(fs.get_matching_paths(&pattern, |_| {})?, ENTRIES / 10))
        })
    }

    /// Measures each of two operations that undo each other.
    fn made_and_removed(
        &self,
        rows: &Rows<'_>,
        names: [&str; 2],
        make: impl Fn(&CStr) -> CallResult<'f>,
        remove: impl Fn(&CStr) -> CallResult<'f>,
    ) -> Result<()> {
        for (timed, name) in names.into_iter().enumerate() {
            rows.row(name, None, || {
                let paths = (0..FILES).map(|number| self.path(&format!("made-{number}")));
                let paths = paths.collect::<Result<Vec<_>>>()?;
                rows.time(FILES, |times| {
                    let paths = &paths[..times as usize];
                    Ok([each(paths, &make)?, each(paths, &remove)?][timed])
                })
            })?;
        }
        Ok(())
    }

    /// Returns the directory that is listed, and fills it if necessary. Filling it is expensive, so
    /// it is skipped where no slot lists the directory.
    fn entries(&self, slot: &'static str, is_there: bool) -> Result<CString> {
        if !is_there {
            return Err(CallError::Missing(tables::FILESYSTEM.0, slot).into());
        }
        let failed = |why: RowError| match why {
            RowError::Failed(why) => {
                RowError::Failed(format!("cannot create {ENTRIES} files: {why}"))
            }
            other => other,
        };
        let last = self.path(&format!("list/file-{}", ENTRIES - 1))?;
        let list = self.path("list")?;
        if self.fs.stat(&last).is_ok() {
            return Ok(list);
        }
        if self.fs.ops.create_dir.is_some() {
            self.fs.create_dir(&list).map_err(|why| failed(why.into()))?;
        }
        for number in 0..ENTRIES {
            if stopped() {
                return Err(RowError::Stopped);
            }
            let path = self.path(&format!("list/file-{number}"))?;
            self.fs.write(&path, 1, b"7").map_err(|why| failed(why.into()))?;
        }
        Ok(list)
    }
}

fn expect<'f>(actual: usize, expected: usize) -> CallResult<'f> {
    if actual == expected {
        return Ok(());
    }
    Err(CallError::Wrong(format!("{actual} names, and there are {expected}")))
}
