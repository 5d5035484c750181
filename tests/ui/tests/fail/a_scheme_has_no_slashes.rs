//! A scheme is written without what follows it in a URI.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "s3://")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
