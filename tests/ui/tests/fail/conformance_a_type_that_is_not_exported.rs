//! The attribute is missing on the type that is tested.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct Other;

tf_plugin_testing::filesystem::conformance!(Other, "mem://box/");

fn main() {}
