//! Ranges without what open files have around them, to measure the two ways to get one. Not part of the plugin.

use crate::Filesystem;
use crate::connection::Client;
use std::sync::Arc;
use tf_fs_object_store::{Client as _, Connect as _};
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
#[derive(Debug)]
pub struct Ranges(tf_fs_object_store::Ranges<Client>);

impl Ranges {
    /// An object, reached with the settings of the environment: one GET, which says which version is read.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none, `INVALID_ARGUMENT` for a URI that names no object, and those of the settings and
    /// of the request.
    pub fn open(way: Way, uri: &str) -> Result<Self> {
        let connection = Filesystem::shared().connection()?;
        let name = Client::file(Uri::new(uri.as_bytes()))?;
        let bucket = connection.block_on(connection.client.open(&name.bucket))?;
        if way == Way::Sdk {
            bucket.use_sdk();
        }
        tf_fs_object_store::Ranges::open(connection, Arc::new(bucket), name).map(Self)
    }

    /// Fills `to` with the bytes from `offset` on, by one GET unless that fails. Any number of threads may.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if the object ends before, and those of the request.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.0.read(offset, to)
    }
}
