//! The method that needs it is named.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        Err(Error::not_found(uri))
    }
}

fn main() {}
