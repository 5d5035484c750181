//! The options are listed.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    malfromed: "mem://box/x",
}

fn main() {}
