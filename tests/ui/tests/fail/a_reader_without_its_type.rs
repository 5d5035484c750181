//! The method that needs it is named.

use tf_fs_plugin::prelude::*;

struct MemFs;

struct Reader;

impl RandomAccessFile for Reader {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        Ok(())
    }
}

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader)
    }
}

fn main() {}
