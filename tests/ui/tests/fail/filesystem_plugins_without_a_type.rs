//! There is nothing to export.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

filesystem_plugins! {}

fn main() {
    let _: Option<FilesystemPlugins> = None;
}
