//! Only a string literal is a scheme.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = b"mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
