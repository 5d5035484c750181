//! The attribute cannot see the names of what it expands to.

use tf_fs_plugin::prelude::*;

struct MemFs;

macro_rules! stat {
    () => {
        fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
            Err(Error::not_found(uri))
        }
    };
}

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    stat!();
}

fn main() {}
