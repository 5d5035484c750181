//! A URI is a text, and a set-up makes one.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

tf_fs_plugin::conformance!(MemFs, 4711);

fn main() {}
