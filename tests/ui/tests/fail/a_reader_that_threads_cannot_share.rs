//! A file is read by several threads at a time.

use std::cell::Cell;
use tf_fs_plugin::prelude::*;

struct MemFs;

struct Reader(Cell<u64>);

impl RandomAccessFile for Reader {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        Ok(())
    }
}

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    type Reader = Reader;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader(Cell::new(0)))
    }
}

fn main() {}
