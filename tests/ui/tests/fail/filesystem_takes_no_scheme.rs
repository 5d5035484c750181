//! `#[filesystem]` exports nothing.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
