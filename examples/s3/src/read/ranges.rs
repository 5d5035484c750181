//! Ranges without what open files have around them, to measure the two ways to get one. Not part of the plugin.

use super::get::{Range, Target};
use super::source::{Fetch, Source};
use crate::connection::Connection;
use crate::name;
use crate::{S3, SHARED};
use std::fmt;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// How a range is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over connections of our own.
    Pooled,
    /// By the official SDK, with the plugin's settings.
    Sdk,
}

/// An object whose ranges are read one by one: no reading ahead, nothing kept.
pub struct Ranges {
    connection: Arc<Connection>,
    source: Arc<Source>,
}

impl Ranges {
    /// An object, reached with the settings of the environment: one GET, which says which version is read.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none, `INVALID_ARGUMENT` for a URI that names no object, and those of the settings and
    /// of the request.
    pub fn open(way: Way, uri: &str) -> Result<Self> {
        let connection = S3(Arc::clone(&SHARED)).connection()?;
        let name = name::file(Uri::new(uri.as_bytes()))?;
        let bucket = connection.block_on(connection.bucket(&name.bucket))?;
        let target = Target::new(bucket);
        if way == Way::Sdk {
            target.use_sdk();
        }
        let reads = Arc::clone(&connection.reads);
        let source = Arc::new(Source::new(name, Arc::new(target), reads));
        let mut first = Fetch::new(Arc::clone(&source), Range::new(0, 1), "open");
        ensure!(connection.block_on(first.open())?.is_some(), Error::not_found(&source.name));
        Ok(Self { connection, source })
    }

    /// Fills `to` with the bytes from `offset` on, by one GET unless that fails. Any number of threads may.
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

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("name", &self.source.name).finish_non_exhaustive()
    }
}
