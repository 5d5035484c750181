//! An object open for reading, as TensorFlow has it: across forks, replaced versions, and names that are directories.

use crate::read::File;
use crate::{Connect, Name, namespace};
use arc_swap::ArcSwap;
use std::fmt;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

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
        self.file.load().size()
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
                // The remembered version is out of date, and no byte of it was returned.
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
