//! Filesystems that write only some operations.

use crate::full::{Full, Reader, Writer};
use tf_fs_plugin::*;

/// The least that one can read, write and list with; the rest is for the defaults.
pub(crate) struct Basic(Full);

export!(Basic: "basic" => Basic);

#[tf_fs_plugin::filesystem]
impl Filesystem for Basic {
    type Reader = Reader;
    type Writer = Writer;

    fn new(scheme: &str) -> Result<Self> {
        Full::new(scheme).map(Self)
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Reader> {
        self.0.new_random_access_file(uri)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        self.0.new_writable_file(uri)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.0.create_dir(uri)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.0.delete_file(uri)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.0.delete_dir(uri)
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        self.0.stat(uri)
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.0.get_children(uri)
    }
}

/// A filesystem in which nothing exists, not even its root.
#[derive(Debug)]
pub(crate) struct Rootless;

export!(Rootless: "rootless" => Rootless);

#[tf_fs_plugin::filesystem]
impl Filesystem for Rootless {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(Error::not_found(uri))
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        Err(Error::not_found(uri))
    }
}
