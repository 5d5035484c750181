//! Files open for writing.
//!
//! What is appended is collected in a [`Buffer`](crate::Buffer) until it is a part, which is uploaded while TensorFlow
//! goes on writing. A file of at most one part is stored by one PUT when it is closed or flushed. Nothing is visible
//! before the whole object is.
//!
//! A flush publishes what there is. As long as it is small, the bytes stay in memory and are sent again the next time;
//! from then on the next version is made in the store, of a copy of the published object and the new bytes.
//!
//! | Module | Job |
//! |---|---|
//! | `store` | what a store is told of a write |
//! | `open` | one file: its bytes, what is published of it |
//! | `upload`, `parts` | parts on their way, and how large they are |
//! | `publish` | how an object becomes visible |
//! | `publication` | what stores do differently then |

mod open;
mod parts;
mod publication;
pub(crate) mod publish;
mod store;
mod upload;

pub(crate) use publication::Plain;
pub use publication::{Publication, Refusal, Unchecked};
pub use store::{
    Attributes, Before, CopyLimits, Multipart, Part, PartLimits, Sent, Stored, Target, WriteLimits,
};

use crate::{Connect, Name, ObjectStore};
use open::Open;
use std::fmt;
use std::mem;
use tf_fs_plugin::prelude::*;
use upload::again;

/// An object open for writing. It becomes visible whole, at a flush, a sync or the close; whoever drops
/// it without closing it gives up what was not published.
pub struct Writer<P: Connect>(Option<Box<Open<P::Client>>>);

impl<P: Connect> Writer<P> {
    /// A new file, which replaces whatever is there. It makes no request.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the store [cannot be written to](ObjectStore::write_limits); those of
    /// [`Client::open`](crate::Client::open).
    pub fn create(plugin: &P, name: Name) -> Result<Self> {
        let connection = plugin.connection()?;
        let store = connection.block_on(connection.bucket(&name.bucket))?;
        let open = Open::new(connection, store, name, Attributes::default(), Before::Anything)?;
        Ok(Self(Some(Box::new(open))))
    }

    /// A file that goes on after the bytes of an object, or a new one. Nobody else's object is replaced: if it changes
    /// before the file is published, that fails.
    ///
    /// # Errors
    /// As [`create`](Self::create), and those of the requests.
    pub fn append_to(plugin: &P, name: Name) -> Result<Self> {
        let connection = plugin.connection()?;
        let store = connection.block_on(connection.bucket(&name.bucket))?;
        ensure!(store.write_limits().is_some(), open::read_only(&name));
        let found = connection.block_on(publish::find_with_attributes(&*store, &name))?;
        let open = match found {
            // Had somebody else written it meanwhile, theirs would have to be appended to.
            None => Open::new(connection, store, name, Attributes::default(), Before::Nothing)?,
            Some((object, attributes)) => {
                let before = Before::This(object.clone());
                let mut open = Box::new(Open::new(connection, store, name, attributes, before)?);
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
            // The upload is the parent's, and so are the locks in here, which nobody may ever open.
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
