//! A filesystem that only reads names no other type.

#![deny(warnings)]

use tf_fs_plugin::prelude::*;

struct ReadOnly;

struct Reader;

impl RandomAccessFile for Reader {
    fn read_at(&self, _: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.end_of_file();
        Ok(())
    }
}

#[filesystem_plugin(scheme = "ro")]
impl Filesystem for ReadOnly {
    type Reader = Reader;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Reader> {
        Ok(Reader)
    }
}

fn main() {
    use tf_fs_plugin::{OperationTable, Ops};
    assert_eq!(ReadOnly::PROVIDED, Ops::NEW_RANDOM_ACCESS_FILE);
    let registrations = <ReadOnly as tf_fs_plugin::__private::Plugin>::registrations();
    let schemes: Vec<_> = registrations.iter().map(|one| one.scheme()).collect();
    assert_eq!(schemes, ["ro"]);
}
