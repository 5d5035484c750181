//! A library has one `TF_InitPlugin`: no second list of plugins, and no attribute next to one.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct Exported;

mod a {
    super::filesystem_plugins! { "a1" => super::MemFs }
}

mod b {
    super::filesystem_plugins! { "b1" => super::MemFs }
}

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for Exported {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
