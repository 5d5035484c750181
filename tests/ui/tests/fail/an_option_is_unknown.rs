//! The options are listed; the scheme does not count as missing.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(schem = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
