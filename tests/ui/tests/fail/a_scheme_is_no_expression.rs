//! The attribute runs before other macros.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = concat!("m", "em"))]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
