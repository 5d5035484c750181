//! The compiler shows both.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn delete_file(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

fn main() {}
