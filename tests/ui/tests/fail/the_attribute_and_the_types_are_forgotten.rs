//! What is left out comes with the attribute: the second error is the one with the fix.

use tf_fs_plugin::prelude::*;

struct MemFs;

impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
