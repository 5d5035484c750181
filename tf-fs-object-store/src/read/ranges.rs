//! Ranges without the machinery of open files, for measuring a store's GETs. Not part of a filesystem.

use super::source::{Fetch, Source};
use crate::{Client, Connection, Name, Range};
use std::fmt;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// An object whose ranges are read one by one: no reading ahead, nothing kept.
pub struct Ranges<C: Client> {
    connection: Arc<Connection<C>>,
    source: Arc<Source<C::Store>>,
}

impl<C: Client> Ranges<C> {
    /// Opens an object of `store` with one GET, which tells the version that is read.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none, and those of the request.
    pub fn open(connection: Arc<Connection<C>>, store: Arc<C::Store>, name: Name) -> Result<Self> {
        let source = Arc::new(Source::new(name, store, Arc::clone(&connection.reads)));
        let mut first = Fetch::new(Arc::clone(&source), Range::new(0, 1), "open");
        ensure!(connection.block_on(first.open())?.is_some(), Error::not_found(&source.name));
        Ok(Self { connection, source })
    }

    /// Fills `to` with the bytes from `offset` on, with one GET unless that fails. Any number of threads may call it.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if the object ends before, and those of the request.
    pub fn read(&self, offset: u64, mut to: &mut [u8]) -> Result<()> {
        let range = Range::new(offset, offset + to.len() as u64);
        let mut fetch = Fetch::new(Arc::clone(&self.source), range, "read");
        self.connection.block_on(async {
            while !to.is_empty() {
                let n = fetch.fill(&mut to).await?;
                let ended = || format!("{}: it ends before", self.source.name);
                ensure!(n > 0, Error::new(Code::OutOfRange, ended()));
            }
            Ok(())
        })
    }
}

impl<C: Client> fmt::Debug for Ranges<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("name", &self.source.name).finish_non_exhaustive()
    }
}
