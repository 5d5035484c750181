//! Which one counts would be a guess.

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
    visible: create,
    root: "mem://box/",
    visible: close,
}

fn main() {}
