//! A filesystem lives as long as the process.

use tf_fs_plugin::prelude::*;

struct MemFs<'a>(&'a str);

#[filesystem]
impl<'a> Filesystem for MemFs<'a> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(""))
    }
}

fn main() {}
