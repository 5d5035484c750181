//! The attribute belongs to the impl of the trait.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
