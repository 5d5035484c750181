//! The compiler points into the body as if the attribute were not there.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn path_exists(&self, _: Uri<'_>) -> Result<bool> {
        let exists: bool = "yes";
        Ok(exists)
    }
}

fn main() {}
