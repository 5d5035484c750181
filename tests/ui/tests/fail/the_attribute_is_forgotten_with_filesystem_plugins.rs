//! What is exported has the other attribute.

use tf_fs_plugin::Unsupported;
use tf_fs_plugin::prelude::*;

struct MemFs;

impl Filesystem for MemFs {
    type Reader = Unsupported;
    type Writer = Unsupported;
    type Region = Unsupported;
    type Transaction = Unsupported;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

filesystem_plugins! { "mem" => MemFs }

fn main() {}
