//! The second registration would fail.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(schemes("s3", "s3a", "s3"))]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
