//! Files open for reading.

mod assumption;
mod chunk;
mod file;
mod get;
mod habits;
mod part;
mod pattern;
#[cfg(feature = "ranges")]
mod ranges;
mod source;

use crate::S3;
use crate::names;
use arc_swap::ArcSwap;
use chunk::Chunks;
use file::File;
use get::{Pool, Target};
use habits::Habits;
#[cfg(feature = "ranges")]
pub use ranges::{Ranges, Way};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// What all files open for reading share in a process.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pool: Arc<Pool>,
    chunks: Arc<Chunks>,
    habits: Habits,
    /// Files that read ahead now.
    reading: AtomicUsize,
    targets: Mutex<HashMap<Arc<str>, Arc<Target>>>,
}

/// An object open for reading, at the version that it had when it was opened.
pub struct Reader {
    s3: S3,
    name: Name,
    /// Of this process, or of its parent until the first read after a fork.
    file: ArcSwap<File>,
}

impl Reader {
    pub(crate) fn open(s3: &S3, name: Name) -> Result<Self> {
        let connection = s3.connection()?;
        ensure!(
            connection.pending.unpublished(&name).is_none(),
            Error::failed_precondition(format_args!(
                "{name}: open: it is still being written; close it first"
            ))
        );
        if let Some(file) = connection.block_on(File::open(&connection, &name))? {
            return Ok(Self { s3: s3.clone(), name, file: ArcSwap::from_pointee(file) });
        }
        // Only now does it matter: one more request.
        match names::is_directory(&connection, &name) {
            Ok(true) => Err(Error::expected_file(&name)),
            // Who may not list need not know: there is no such object either way.
            Err(error) if error.code() != Code::PermissionDenied => Err(error),
            _ => Err(Error::not_found(&name)),
        }
    }

    /// The object's bytes.
    pub(crate) fn len(&self) -> u64 {
        self.file.load().version().size
    }

    /// The file of this process.
    fn file(&self) -> Result<Arc<File>> {
        loop {
            let file = self.file.load_full();
            if file.connection.is_of_this_process() {
                return Ok(file);
            }
            let connection = self.s3.connection()?;
            let new = connection.block_on(File::again(&connection, &file))?;
            self.file.compare_and_swap(&file, Arc::new(new));
            // The parent's: its locks may be held for ever, its threads are not here.
            std::mem::forget(file);
        }
    }

    /// Opens the object as it is now in place of `file`, unless another thread has done so.
    fn open_anew(&self, file: &Arc<File>) -> Result<()> {
        if !Arc::ptr_eq(file, &self.file.load()) {
            return Ok(());
        }
        let connection = &file.connection;
        connection.listings.changed(&self.name);
        let new = connection.block_on(File::ask(connection, &self.name))?;
        self.replace(file, new.ok_or_else(|| Error::not_found(&self.name))?);
        Ok(())
    }

    /// Of threads that come with one at a time the first wins: there is one version for all of them.
    fn replace(&self, file: &Arc<File>, new: File) {
        self.file.compare_and_swap(file, Arc::new(new));
    }
}

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        loop {
            let file = self.file()?;
            if file.may_have_grown(offset)
                && let Some(longer) = file.connection.block_on(file.grown())?
            {
                self.replace(&file, longer);
                continue;
            }
            match file.read(offset, buf) {
                // What was remembered of it a moment ago is past, and nobody has seen a byte of it.
                Err(error) if error.code() == Code::FailedPrecondition && file.give_up() => {
                    self.open_anew(&file)?;
                    buf.clear();
                }
                Err(error) if error.code() == Code::NotFound => {
                    file.connection.listings.changed(&self.name);
                    return Err(error);
                }
                outcome => return outcome,
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let file = self.file.load_full();
        if !file.connection.is_of_this_process() {
            std::mem::forget(file);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("name", &self.name).finish_non_exhaustive()
    }
}
