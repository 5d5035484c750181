//! Which trait a type lacks, and what to write.

use std::cell::Cell;
use std::rc::Rc;
use tf_fs_plugin::Unsupported;
use tf_fs_plugin::prelude::*;

// Several threads read a file at a time.
struct Reader(Cell<u64>);

impl RandomAccessFile for Reader {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        Ok(())
    }
}

struct Writer;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    type Reader = Reader;
    type Writer = Writer;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader(Cell::new(0)))
    }

    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }
}

// Operations run on any thread.
struct Unshared {
    _files: Rc<u8>,
}

#[filesystem]
impl Filesystem for Unshared {
    fn new(_: &str) -> Result<Self> {
        Ok(Self { _files: Rc::new(0) })
    }
}

// The attribute adds the missing items: the second error is the one with the fix.
struct TypesForgotten;

impl Filesystem for TypesForgotten {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// Nothing would be exported, and `filesystem_plugins!` adds no second error.
struct AttributeForgotten;

impl Filesystem for AttributeForgotten {
    type Reader = Unsupported;
    type Writer = Unsupported;
    type Region = Unsupported;
    type Transaction = Unsupported;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

pub struct NotAFilesystem;

filesystem_plugins! { "mem" => AttributeForgotten, "mem2" => NotAFilesystem }

fn main() {}
