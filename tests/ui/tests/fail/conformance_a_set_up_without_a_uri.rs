//! A directory alone is not what the filesystem calls it.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct Server;

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: once(|| Server),
}

fn main() {}
