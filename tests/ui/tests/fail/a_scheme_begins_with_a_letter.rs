//! TensorFlow takes `3fs://` for a local path.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "3fs")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
