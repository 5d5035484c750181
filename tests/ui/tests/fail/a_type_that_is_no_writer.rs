//! The compiler says which trait it lacks.

use tf_fs_plugin::prelude::*;

struct MemFs;

struct Writer;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    type Writer = Writer;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }
}

fn main() {}
