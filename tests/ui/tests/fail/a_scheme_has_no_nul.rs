//! A scheme is a C string.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "me\0m")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
