//! Without a scheme there is nothing to register.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(schemes())]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
