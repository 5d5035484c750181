//! A library has one `TF_InitPlugin`.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

mod a {
    super::filesystem_plugins! { "a" => super::MemFs }
}

mod b {
    super::filesystem_plugins! { "b" => super::MemFs }
}

fn main() {}
