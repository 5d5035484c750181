//! The method is there under a condition, and so is the error.

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

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    #[cfg(all())]
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }

    #[cfg(any())]
    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader)
    }
}

fn main() {}
