//! Items that do not fit the trait's definition: the compiler reports each once, and knows similar names.

use tf_fs_plugin::prelude::*;

struct Misspelt;

#[filesystem]
impl Filesystem for Misspelt {
    type Raeder = ();

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn stta(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }
}

struct Twice;

#[filesystem]
impl Filesystem for Twice {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }
}

struct Unsafe;

#[filesystem]
unsafe impl Filesystem for Unsafe {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct Generic;

#[filesystem]
impl Filesystem<u8> for Generic {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
