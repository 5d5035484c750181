//! Independent mistakes do not hide each other.

use tf_fs_plugin::prelude::*;

struct MemFs;

struct Writer;

impl WritableFile for Writer {
    fn append(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn tell(&mut self) -> Result<u64> {
        Ok(0)
    }
}

#[filesystem_plugin(schemes("my-fs", "gs"), autoload = 1, colour = "red")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }
}

fn main() {}
