//! The options are listed.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

filesystem_plugins! { "mem" => MemFs; schemes("mem2"), colour = "red", autoload }

fn main() {
    let _: Option<FilesystemPlugins> = None;
}
