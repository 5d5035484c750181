//! The attribute sees tokens, not values.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = SCHEME)]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
