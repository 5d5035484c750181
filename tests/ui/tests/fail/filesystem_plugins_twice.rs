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
    super::filesystem_plugins! { "a1" => super::MemFs }
}

mod b {
    super::filesystem_plugins! { "b1" => super::MemFs }
}

fn main() {}
