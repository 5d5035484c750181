//! A scheme is a string literal.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

filesystem_plugins! { mem => MemFs }

fn main() {
    let _: Option<FilesystemPlugins> = None;
}
