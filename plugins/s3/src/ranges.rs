//! Ranges without the machinery of open files, to measure them. Not part of the plugin.

use crate::Filesystem;
use crate::client::Client;
use std::sync::Arc;
use tf_fs_object_store::{Client as _, Connect as _};
use tf_fs_plugin::prelude::*;

/// An object whose ranges are read one by one: no reading ahead, nothing kept.
#[derive(Debug)]
pub struct Ranges(tf_fs_object_store::Ranges<Client>);

impl Ranges {
    /// Opens an object, with the settings of the environment and one GET, which tells the version that is read.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none, `INVALID_ARGUMENT` for a URI that is not the name of an object, and those of the
    /// settings and of the request.
    pub fn open(uri: &str) -> Result<Self> {
        let connection = Filesystem::shared().connection()?;
        let name = Client::file(Uri::new(uri.as_bytes()))?;
        let bucket = connection.block_on(connection.client.open(&name.bucket))?;
        tf_fs_object_store::Ranges::open(connection, Arc::new(bucket), name).map(Self)
    }

    /// Fills `to` with the bytes from `offset` on, with one GET unless that fails. Any number of threads may call it.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if the object ends before, and those of the request.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.0.read(offset, to)
    }
}
