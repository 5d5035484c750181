//! TensorFlow takes `S 3://` for a local path.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "S 3")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
