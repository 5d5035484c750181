//! A `macro_rules!` macro may write the whole `impl`.

#![deny(warnings)]

use tf_fs_plugin::prelude::*;
use tf_fs_plugin::{OperationTable, Ops};

struct MemFs;

macro_rules! filesystem_for {
    ($scheme:literal, $ty:ty, $method:item, $name:ident) => {
        #[filesystem_plugin(scheme = $scheme)]
        impl Filesystem for $ty {
            fn new(_: &str) -> Result<Self> {
                Ok(Self)
            }

            $method

            fn $name(&self, uri: Uri<'_>) -> Result<()> {
                Err(Error::not_found(uri))
            }
        }
    };
}

filesystem_for! {
    "mem",
    MemFs,
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    },
    delete_file
}

#[test]
fn what_is_written_is_provided() {
    assert_eq!(MemFs::PROVIDED, Ops::STAT.union(Ops::DELETE_FILE));
}
