//! The method that needs the type is named, and nothing is said of the `impl` around it.

use std::sync::Arc;
use tf_fs_plugin::prelude::*;

struct Reader;

impl RandomAccessFile for Reader {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        Ok(())
    }
}

struct Writer;

impl WritableFile for Writer {
    fn append(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn tell(&mut self) -> Result<u64> {
        Ok(0)
    }
}

struct Tx;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader)
    }

    // One mistake, although two methods need the type.
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }

    fn new_appendable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        Err(Error::not_found(uri))
    }

    fn start_transaction(&self) -> Result<Arc<Tx>> {
        Ok(Arc::new(Tx))
    }

    fn end_transaction(&self, _: Arc<Tx>) -> Result<()> {
        Ok(())
    }
}

struct ThroughSelf;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for ThroughSelf {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    // The signature does not say what the type would be.
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Self::Writer> {
        Err(Error::unimplemented("no"))
    }
}

struct UnderACondition;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for UnderACondition {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    #[cfg(all())]
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Writer> {
        Ok(Writer)
    }

    // Where the method is not there, neither is the mistake.
    #[cfg(any())]
    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Missing> {
        Ok(Missing)
    }
}

// The attribute cannot see the names of what a macro expands to.
macro_rules! stat {
    () => {
        fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
            Err(Error::not_found(uri))
        }
    };
}

struct AMacroBetweenTheMethods;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for AMacroBetweenTheMethods {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    stat!();
}

fn main() {}
