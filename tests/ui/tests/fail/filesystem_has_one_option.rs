//! The option is named.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem(autoload = false)]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
