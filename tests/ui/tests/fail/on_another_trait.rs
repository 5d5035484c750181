//! The attribute knows this trait only.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Clone for MemFs {
    fn clone(&self) -> Self {
        Self
    }
}

fn main() {}
