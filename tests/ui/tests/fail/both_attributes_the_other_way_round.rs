//! One contains the other.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
