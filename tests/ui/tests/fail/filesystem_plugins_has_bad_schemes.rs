//! The rules are the same, also across types.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

filesystem_plugins! { "mem" | "my-fs" => MemFs, "gs" => MemFs, "mem" => MemFs }

fn main() {
    let _: Option<FilesystemPlugins> = None;
}
