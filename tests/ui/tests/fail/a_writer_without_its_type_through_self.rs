//! The signature does not say what it would be.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_writable_file(&self, _: Uri<'_>) -> Result<Self::Writer> {
        Err(Error::unimplemented("no"))
    }
}

fn main() {}
