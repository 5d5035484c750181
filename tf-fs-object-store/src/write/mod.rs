//! Files open for writing.
//!
//! Appended bytes are collected in a [`Buffer`](crate::Buffer) until they are a part, which is uploaded while
//! TensorFlow goes on writing. A file of at most one part is stored with one PUT when it is closed or flushed. Nothing
//! is visible before the whole object is.
//!
//! A flush publishes what there is. While it is small, the bytes stay in memory and are sent again the next time. From
//! then on the store makes the next version from a copy of the published object and the new bytes.
//!
//! | Module | Job |
//! |---|---|
//! | `types` | what a store is told of a write |
//! | `writer` | one file: its bytes, and what of it is published |
//! | `upload`, `parts` | parts that are being sent, and their size |
//! | `sequential` | an upload from the first byte to the last |
//! | `commit` | how an object becomes visible |
//! | `by_rename` | how it does in a store that writes in place and renames |
//! | `commit_strategy` | how stores differ in that |

mod by_rename;
pub(crate) mod commit;
mod commit_strategy;
mod parts;
mod sequential;
mod types;
mod upload;
mod writer;

pub(crate) use by_rename::is_temporary;
pub use by_rename::temporary_name;
pub(crate) use commit_strategy::DefaultCommit;
pub use commit_strategy::{CommitStrategy, ConflictOutcome, MissingCheck};
pub use sequential::{BoxUpload, Upload};
pub use types::{
    Attributes, CopyLimits, Multipart, Part, PartLimits, Payload, Publication, PutMode, PutOptions,
    StoredObject, WriteLimits,
};

use crate::{Connect, Name, ObjectStore};
use std::fmt;
use std::mem;
use tf_fs_plugin::prelude::*;
use upload::again;
use writer::Open;

/// An object open for writing. It becomes visible as a whole, at a flush, a sync or the close. Dropping it without
/// closing it discards what was not published.
pub struct Writer<P: Connect>(Option<Box<Open<P::Client>>>);

impl<P: Connect> Writer<P> {
    /// Creates a file, which replaces what is there. It makes no request.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the store [cannot be written to](ObjectStore::write_limits); those of
    /// [`Client::open`](crate::Client::open).
    pub fn create(plugin: &P, name: Name) -> Result<Self> {
        let connection = plugin.connection()?;
        let store = connection.block_on(connection.bucket(&name.bucket))?;
        let open = Open::new(connection, store, name, Attributes::default(), PutMode::Overwrite)?;
        Ok(Self(Some(Box::new(open))))
    }

    /// Opens a file that continues after the bytes of an object, or creates one. Nobody else's object is replaced: if
    /// it changes before the file is published, publishing fails.
    ///
    /// # Errors
    /// As [`create`](Self::create), and those of the requests.
    pub fn append_to(plugin: &P, name: Name) -> Result<Self> {
        let connection = plugin.connection()?;
        let store = connection.block_on(connection.bucket(&name.bucket))?;
        ensure!(store.write_limits().is_some(), writer::read_only(&name));
        let found = connection.block_on(commit::find_with_attributes(&*store, &name))?;
        let open = match found {
            // If somebody else wrote it meanwhile, theirs would have to be appended to.
            None => Open::new(connection, store, name, Attributes::default(), PutMode::Create)?,
            Some((object, attributes)) => {
                let mode = PutMode::Update(object.clone());
                let mut open = Box::new(Open::new(connection, store, name, attributes, mode)?);
                let read = open.go_on_after(&object);
                let mut writer = Self(Some(open));
                if let Err(error) = read {
                    writer.open()?.has_failed(&error);
                    return Err(error);
                }
                return Ok(writer);
            }
        };
        Ok(Self(Some(Box::new(open))))
    }

    fn open(&mut self) -> Result<&mut Open<P::Client>> {
        let open = self.0.as_mut().expect("taken only by `drop`");
        ensure!(
            open.connection.is_of_this_process(),
            Error::failed_precondition(format_args!(
                "{}: was opened for writing before this process was forked; open it in the process that writes it",
                open.object.name
            ))
        );
        match &open.broken {
            Some(error) => Err(again(error)),
            None => Ok(open),
        }
    }
}

impl<P: Connect> WritableFile for Writer<P> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let open = self.open()?;
        open.append(data).or_else(|error| open.fail(error))
    }

    fn tell(&mut self) -> Result<u64> {
        Ok(self.open()?.len)
    }

    fn flush(&mut self) -> Result<()> {
        self.open()?.flush()
    }

    fn close(&mut self) -> Result<()> {
        self.open()?.close()
    }
}

impl<P: Connect> Drop for Writer<P> {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        if open.connection.is_of_this_process() {
            open.give_up();
        } else {
            // The upload is the parent's, and so are the locks in here, which may never be released.
            mem::forget(open);
        }
    }
}

impl<P: Connect> fmt::Debug for Writer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.0.as_deref();
        f.debug_struct("Writer")
            .field("name", &open.map(|open| &open.object.name))
            .field("len", &open.map(|open| open.len))
            .finish_non_exhaustive()
    }
}
