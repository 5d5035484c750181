//! The tests need one, and the message says in which three ways it can be given.

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
    directories: implied,
}

fn main() {}
