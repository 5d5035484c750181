//! Files open for reading.

mod assumption;
mod cache_writer;
mod chunk;
mod file;
mod prefetch_history;
#[cfg(feature = "ranges")]
mod ranges;
mod readahead;
mod segment;
mod source;
mod version;
mod whole;

use crate::disk::Disks;
use crate::{Client, Connect, Connection, Name, Range, namespace};
use arc_swap::ArcSwap;
use chunk::ChunkPool;
use file::File;
use prefetch_history::PrefetchHistory;
use source::{Fetch, Source};
use std::fmt;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use version::Trusts;

#[cfg(feature = "ranges")]
pub use ranges::Ranges;
pub(crate) use whole::Whole;

/// What all files open for reading share in a process.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    chunks: Arc<ChunkPool>,
    habits: PrefetchHistory,
    disks: Disks,
    trusts: Trusts,
}

/// Requests the size of an object, where only a GET tells it.
///
/// # Errors
/// `NOT_FOUND`, and those of the request.
pub(crate) async fn size<C: Client>(connection: &Connection<C>, name: &Name) -> Result<u64> {
    let store = connection.bucket(&name.bucket).await?;
    let source = Arc::new(Source::new(name.clone(), store, Arc::clone(&connection.reads)));
    let head = Fetch::new(source, Range::new(0, 1), "open").open().await?;
    head.map(|head| head.size).ok_or_else(|| Error::not_found(name))
}

/// An object open for reading, at the version that it had when it was opened.
///
/// A file may be appended to while it is open. A read at its end then continues with the longer version.
pub struct Reader<P: Connect> {
    plugin: P,
    name: Name,
    /// Of this process, or of its parent until the first read after a fork.
    file: ArcSwap<File<P::Client>>,
}

impl<P: Connect> Reader<P> {
    /// Opens an object.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` if it is a directory, or while this process is writing it; and those of the
    /// request.
    pub fn open(plugin: &P, name: Name) -> Result<Self> {
        let connection = plugin.connection()?;
        ensure!(
            connection.unpublished.get(&name).is_none(),
            Error::failed_precondition(format_args!(
                "{name}: open: it is still being written; close it first"
            ))
        );
        if let Some(file) = connection.block_on(File::open(&connection, &name))? {
            let (plugin, file) = (plugin.clone(), ArcSwap::from_pointee(file));
            return Ok(Self { plugin, name, file });
        }
        // Only now is it worth one more request.
        match connection.block_on(namespace::is_listed_directory(&connection, &name)) {
            Ok(true) => Err(Error::expected_file(&name)),
            // Without permission to list this cannot be found out, and the object is missing either way.
            Err(error) if error.code() != Code::PermissionDenied => Err(error),
            _ => Err(Error::not_found(&name)),
        }
    }

    /// Returns the size of the object, in bytes.
    pub fn size(&self) -> u64 {
        self.file.load().version().size
    }

    /// Returns the file of this process.
    fn file(&self) -> Result<Arc<File<P::Client>>> {
        loop {
            let file = self.file.load_full();
            if file.connection.is_of_this_process() {
                return Ok(file);
            }
            let connection = self.plugin.connection()?;
            let new = connection.block_on(File::again(&connection, &file))?;
            self.file.compare_and_swap(&file, Arc::new(new));
            // The parent's: its locks may be held for ever, and its threads are not here.
            std::mem::forget(file);
        }
    }

    /// Opens the object as it is now in place of `file`, unless another thread has done so.
    fn open_anew(&self, file: &Arc<File<P::Client>>) -> Result<()> {
        if !Arc::ptr_eq(file, &self.file.load()) {
            return Ok(());
        }
        let connection = &file.connection;
        connection.listings.invalidate(&self.name);
        let new = connection.block_on(File::ask(connection, &self.name))?;
        self.replace(file, new.ok_or_else(|| Error::not_found(&self.name))?);
        Ok(())
    }

    /// Replaces the file. Of several threads the first wins: there is one version for all of them.
    fn replace(&self, file: &Arc<File<P::Client>>, new: File<P::Client>) {
        self.file.compare_and_swap(file, Arc::new(new));
    }
}

impl<P: Connect> RandomAccessFile for Reader<P> {
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
                // What was remembered of it is out of date, and nobody has seen a byte of it.
                Err(error) if error.code() == Code::FailedPrecondition && file.give_up() => {
                    self.open_anew(&file)?;
                    buf.clear();
                }
                Err(error) if error.code() == Code::NotFound => {
                    file.connection.listings.invalidate(&self.name);
                    return Err(error);
                }
                outcome => return outcome,
            }
        }
    }
}

impl<P: Connect> Drop for Reader<P> {
    fn drop(&mut self) {
        let file = self.file.load_full();
        if !file.connection.is_of_this_process() {
            std::mem::forget(file);
        }
    }
}

impl<P: Connect> fmt::Debug for Reader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("name", &self.name).finish_non_exhaustive()
    }
}
