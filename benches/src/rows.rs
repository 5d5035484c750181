//! The measured operations and the files they work on.

use std::ffi::CString;
use std::hint::black_box;

use anyhow::{Result, ensure};
use tf_fs_sys::{TF_Code, TF_NOT_FOUND, TF_OK, TF_OUT_OF_RANGE};

use cargo_tf_plugin::host::{Filesystem, Reader, Writer, code_name};

use crate::{c, comparison, done};

/// How many files the measured directories hold in all.
const FILES: usize = 1000;
const DIRECTORIES: usize = 10;
const KIB: usize = 1024;
/// Length of the files that are read.
const LARGE: usize = 256 * KIB;
const LARGE_FILES: usize = 4;

/// Does the operation so many times.
type Run = fn(&mut Session<'_>, usize);

/// A row of the table: an operation and its size.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    name: &'static str,
    operations: usize,
    /// The size of a read or an append.
    bytes: usize,
    appends: bool,
    /// The code that each operation returns.
    code: TF_Code,
    run: Run,
}

/// A row with so many operations that a round takes about a millisecond.
const fn row(name: &'static str, run: Run) -> Row {
    Row { name, operations: 4 * FILES, bytes: 16, appends: false, code: TF_OK, run }
}

impl Row {
    /// All rows, in the order of the table.
    pub const ALL: &[Self] = &[
        // Of a canonical name, which precedes nearly every other operation.
        row("`translate_name`", |s, n| {
            s.names.files.iter().cycle().take(n).for_each(|path| {
                let _ = s.plugin.translate_name(path, |name| {
                    black_box(name);
                });
            });
        }),
        row("`path_exists`, hit", |s, n| exist(s.plugin, &s.names.files, n)),
        // In a directory that exists.
        Row {
            code: TF_NOT_FOUND,
            ..row("`path_exists`, miss", |s, n| exist(s.plugin, &s.names.missing, n))
        },
        row("`stat`", |s, n| {
            let files = s.names.files.iter().cycle().take(n);
            files.for_each(|path| drop(black_box(s.plugin.stat(path))));
        }),
        row("open for reading + `cleanup`", |s, n| {
            let files = s.names.files.iter().cycle().take(n);
            files.for_each(|path| drop(black_box(s.plugin.open(path))));
        }),
        row("`read` 16 B", read),
        Row { bytes: 4 * KIB, ..row("`read` 4 KiB", read) },
        Row { bytes: LARGE, operations: 50, ..row("`read` 256 KiB", read) },
        // Which gives none.
        Row {
            code: TF_OUT_OF_RANGE,
            ..row("`read` at the end", |s, n| {
                for operation in 0..n {
                    let reader = &s.readers[operation % LARGE_FILES];
                    let _ = black_box(reader.read(LARGE as u64, &mut s.buffer));
                }
            })
        },
        Row { appends: true, ..row("`append` 16 B", append) },
        Row { appends: true, bytes: 4 * KIB, operations: 500, ..row("`append` 4 KiB", append) },
        Row {
            operations: 10,
            ..row("`get_children`, 1,000 entries", |s, n| {
                for _ in 0..n {
                    let _ = black_box(s.plugin.get_children(&s.names.listed, |name| {
                        black_box(name);
                    }));
                }
            })
        },
    ];
}

fn exist(plugin: &Filesystem, paths: &[CString], operations: usize) {
    paths.iter().cycle().take(operations).for_each(|path| drop(plugin.path_exists(path)));
}

fn read(session: &mut Session<'_>, operations: usize) {
    let mut offset = 0;
    for operation in 0..operations {
        let reader = &session.readers[operation % LARGE_FILES];
        let _ = black_box(reader.read(offset as u64, &mut session.buffer));
        offset = (offset + session.buffer.len()) % LARGE;
    }
}

/// To a growing file.
fn append(session: &mut Session<'_>, operations: usize) {
    if let Some(writer) = &mut session.writer {
        (0..operations).for_each(|_| drop(writer.append(&session.buffer)));
    }
}

impl comparison::Row for Row {
    fn name(self) -> &'static str {
        self.name
    }

    fn operations(self) -> usize {
        self.operations
    }
}

/// The names of the files that the rows use.
#[derive(Debug)]
pub struct Names {
    files: Vec<CString>,
    missing: Vec<CString>,
    listed: CString,
    large: Vec<CString>,
    written: CString,
}

impl Names {
    /// Fills a filesystem: 1,000 files in 10 directories, 1,000 files in one directory and a few
    /// large ones.
    pub fn create(plugin: &Filesystem) -> Result<Self> {
        const ROOT: &str = "mem://bench/datasets";
        let directory = |name: &str| -> Result<String> {
            let path = format!("{ROOT}/{name}");
            done(plugin.create_dir(&c(path.as_str())))?;
            Ok(path)
        };
        let of = FILES / DIRECTORIES;
        done(plugin.create_dir(&c(ROOT)))?;
        let mut names = Self {
            files: Vec::new(),
            missing: Vec::new(),
            listed: c(directory("listed")?),
            large: Vec::new(),
            written: c(directory("written")? + "/events.out.tfevents.1763661900"),
        };
        let shards: Vec<String> = (0..DIRECTORIES)
            .map(|shard| directory(&format!("train-{shard:02}")))
            .collect::<Result<_>>()?;
        // Written in the order of their names, as a job writes its shards.
        for index in 0..FILES {
            let path = format!("{}/part-{:05}-of-{of:05}.tfrecord", shards[index / of], index % of);
            done(plugin.write(&c(path.as_str()), 1, path.as_bytes()))?;
            names.missing.push(c(format!("{path}.index")));
            names.files.push(c(path));
        }
        // Looked at in another order, as a shuffling reader does: 617 has no factor in common with 1000.
        for files in [&mut names.files, &mut names.missing] {
            *files = (0..FILES).map(|index| files[index * 617 % FILES].clone()).collect();
        }
        for index in 0..FILES {
            let name = format!("{ROOT}/listed/part-{index:05}-of-{FILES:05}.tfrecord");
            done(plugin.write(&c(name), 1, b""))?;
        }
        for index in 0..LARGE_FILES {
            let name = c(format!("{ROOT}/large-{index}.bin"));
            done(plugin.write(&name, 1, &vec![b'x'; LARGE]))?;
            names.large.push(name);
        }
        Ok(names)
    }
}

/// A row on a plugin, ready to run.
#[derive(Debug)]
pub struct Session<'p> {
    plugin: &'p Filesystem,
    names: &'p Names,
    row: Row,
    readers: Vec<Reader<'p>>,
    writer: Option<Writer<'p>>,
    buffer: Vec<u8>,
}

impl<'p> Session<'p> {
    /// Opens what the row needs.
    pub fn new(plugin: &'p Filesystem, names: &'p Names, row: Row) -> Result<Self> {
        let readers = names.large.iter().map(|name| done(plugin.open(name)));
        let readers = readers.collect::<Result<_>>()?;
        Ok(Self { plugin, names, row, readers, writer: None, buffer: vec![b'a'; row.bytes] })
    }
}

impl comparison::Session for Session<'_> {
    /// A row that appends begins with an empty file.
    fn prepare(&mut self) -> Result<()> {
        if self.row.appends {
            self.writer = None;
            self.writer = Some(done(self.plugin.create(&self.names.written, false))?);
        }
        Ok(())
    }

    fn run(&mut self, operations: usize) {
        (self.row.run)(self, operations);
    }

    fn check(&mut self) -> Result<()> {
        let Row { name, operations, bytes, code: expected, .. } = self.row;
        let status = &self.plugin.status;
        let code = status.code();
        ensure!(code == expected, "{name}: {}: {}", code_name(code), status.message());
        if let Some(writer) = &mut self.writer {
            let length = done(writer.tell())?;
            ensure!(length == (bytes * operations) as i64, "appending made {length} bytes");
        }
        Ok(())
    }
}
