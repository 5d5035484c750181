//! A filesystem lives as long as the process.

use tf_fs_plugin::prelude::*;

struct MemFs<'a>(&'a str);

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs<'_> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(""))
    }
}

fn main() {}
