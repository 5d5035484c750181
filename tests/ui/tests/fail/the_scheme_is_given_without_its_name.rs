//! Options have names.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin("mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
