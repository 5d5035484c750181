//! The compiler knows the similar name.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    type Raeder = ();

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
