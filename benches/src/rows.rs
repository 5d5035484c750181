//! The measured operations and the files they work on.

use std::ffi::CString;
use std::hint::black_box;

use anyhow::{Result, ensure};
use tf_fs_sys::{TF_NOT_FOUND, TF_OK, TF_OUT_OF_RANGE};

use cargo_tf_plugin::host::{Filesystem, Reader, Writer, code_name};

use crate::contest::Row as _;
use crate::{c, contest, done};

/// How many files the measured directories hold in all.
const FILES: usize = 1000;
const DIRECTORIES: usize = 10;
const KIB: usize = 1024;
/// Length of the files that are read.
const LARGE: usize = 256 * KIB;
const LARGE_FILES: usize = 4;

/// A row of the table: an operation and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// `translate_name` of a canonical name, which precedes nearly every other operation.
    TranslateName,
    /// `path_exists` of a file.
    PathExistsHit,
    /// `path_exists` of a missing file in a directory that exists.
    PathExistsMiss,
    /// `stat` of a file.
    Stat,
    /// `new_random_access_file` and `cleanup`.
    Open,
    /// `read` of so many bytes.
    Read(usize),
    /// `read` of 16 bytes at the end of a file, which gives none.
    ReadEnd,
    /// `append` of so many bytes to a growing file.
    Append(usize),
    /// `get_children` of a directory with 1,000 files.
    GetChildren,
}

impl Row {
    /// All rows, in the order of the table.
    pub const ALL: [Self; 12] = [
        Self::TranslateName,
        Self::PathExistsHit,
        Self::PathExistsMiss,
        Self::Stat,
        Self::Open,
        Self::Read(16),
        Self::Read(4 * KIB),
        Self::Read(LARGE),
        Self::ReadEnd,
        Self::Append(16),
        Self::Append(4 * KIB),
        Self::GetChildren,
    ];
}

impl contest::Row for Row {
    fn name(self) -> String {
        let size = |bytes: usize| match bytes {
            bytes if bytes < KIB => format!("{bytes} B"),
            bytes => format!("{} KiB", bytes / KIB),
        };
        match self {
            Self::TranslateName => "`translate_name`".into(),
            Self::PathExistsHit => "`path_exists`, hit".into(),
            Self::PathExistsMiss => "`path_exists`, miss".into(),
            Self::Stat => "`stat`".into(),
            Self::Open => "open for reading + `cleanup`".into(),
            Self::Read(bytes) => format!("`read` {}", size(bytes)),
            Self::ReadEnd => "`read` at the end".into(),
            Self::Append(bytes) => format!("`append` {}", size(bytes)),
            Self::GetChildren => "`get_children`, 1,000 entries".into(),
        }
    }

    /// A round takes about a millisecond.
    fn operations(self) -> usize {
        match self {
            Self::Read(LARGE) => 50,
            Self::Append(bytes) if bytes > KIB => 500,
            Self::GetChildren => 10,
            _ => 4 * FILES,
        }
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
        let mut session =
            Self { plugin, names, row, readers: Vec::new(), writer: None, buffer: Vec::new() };
        let reads = match row {
            Row::Read(bytes) => Some(bytes),
            Row::ReadEnd => Some(16),
            _ => None,
        };
        if let Some(bytes) = reads {
            session.buffer = vec![0; bytes];
            for name in &names.large {
                session.readers.push(done(plugin.open(name))?);
            }
        }
        if let Row::Append(bytes) = row {
            session.buffer = vec![b'a'; bytes];
        }
        Ok(session)
    }
}

impl contest::Session for Session<'_> {
    /// A row that appends begins with an empty file.
    fn prepare(&mut self) -> Result<()> {
        if matches!(self.row, Row::Append(_)) {
            self.writer = None;
            self.writer = Some(done(self.plugin.create(&self.names.written, false))?);
        }
        Ok(())
    }

    fn run(&mut self, operations: usize) {
        let Self { plugin, names, .. } = *self;
        let files = names.files.iter().cycle().take(operations);
        match self.row {
            Row::TranslateName => files.for_each(|path| {
                let _ = plugin.translate_name(path, |name| {
                    black_box(name);
                });
            }),
            Row::PathExistsHit => files.for_each(|path| drop(plugin.path_exists(path))),
            Row::PathExistsMiss => {
                let missing = names.missing.iter().cycle().take(operations);
                missing.for_each(|path| drop(plugin.path_exists(path)));
            }
            Row::Stat => files.for_each(|path| drop(black_box(plugin.stat(path)))),
            Row::Open => files.for_each(|path| drop(black_box(plugin.open(path)))),
            Row::Read(bytes) => {
                let mut offset = 0;
                for operation in 0..operations {
                    let reader = &self.readers[operation % LARGE_FILES];
                    let _ = black_box(reader.read(offset as u64, &mut self.buffer));
                    offset = (offset + bytes) % LARGE;
                }
            }
            Row::ReadEnd => {
                for operation in 0..operations {
                    let reader = &self.readers[operation % LARGE_FILES];
                    let _ = black_box(reader.read(LARGE as u64, &mut self.buffer));
                }
            }
            Row::Append(_) => {
                if let Some(writer) = &mut self.writer {
                    (0..operations).for_each(|_| drop(writer.append(&self.buffer)));
                }
            }
            Row::GetChildren => {
                for _ in 0..operations {
                    let _ = black_box(plugin.get_children(&names.listed, |name| {
                        black_box(name);
                    }));
                }
            }
        }
    }

    fn check(&mut self) -> Result<()> {
        let expected = match self.row {
            Row::PathExistsMiss => TF_NOT_FOUND,
            Row::ReadEnd => TF_OUT_OF_RANGE,
            _ => TF_OK,
        };
        let status = &self.plugin.status;
        let (name, code) = (self.row.name(), status.code());
        ensure!(code == expected, "{name}: {}: {}", code_name(code), status.message());
        if let (Row::Append(bytes), Some(writer)) = (self.row, &mut self.writer) {
            let length = done(writer.tell())?;
            ensure!(
                length == (bytes * self.row.operations()) as i64,
                "appending made {length} bytes"
            );
        }
        Ok(())
    }
}
