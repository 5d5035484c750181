//! Items that `#[cfg]` removes are neither exported nor provided, wherever the attribute is; the type of an operation
//! may go with it.

#![deny(warnings)]
#![allow(clippy::non_minimal_cfg, reason = "a condition that always holds is the case")]

use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::{OperationTable, Operations};

struct MemFs;

#[filesystem_plugin(scheme = "one")]
#[cfg(any())]
impl Filesystem for MemFs {}

#[cfg(any())]
#[filesystem_plugin(scheme = "two")]
impl Filesystem for MemFs {}

#[filesystem_plugin(scheme = "three")]
#[cfg(all())]
impl Filesystem for MemFs {
    #[cfg(any())]
    type Writer = Missing;
    #[cfg(all())]
    type Region = AlignedRegion;
    #[cfg(not(all()))]
    type Region = Missing;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    #[cfg(any())]
    fn new_writable_file(&self, _: Uri<'_>) -> Result<Missing> {
        missing()
    }

    #[cfg(all())]
    #[inline]
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }

    #[cfg_attr(all(), inline, cfg(any()))]
    fn delete_file(&self, _: Uri<'_>) -> Result<Missing> {
        missing()
    }

    #[cfg_attr(any(), cfg(any()))]
    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(Error::not_found(uri))
    }

    #[cfg_attr(all(), doc = "Text", inline)]
    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        Err(Error::not_found(uri))
    }
}

#[test]
fn items_that_cfg_removes_are_not_provided() {
    assert_eq!(
        MemFs::PROVIDED,
        Operations::STAT
            .union(Operations::DELETE_DIR)
            .union(Operations::NEW_READ_ONLY_MEMORY_REGION_FROM_FILE)
    );
}

#[test]
fn items_that_cfg_removes_are_not_registered() {
    assert_eq!(MemFs::registrations()[0].scheme(), "three");
    assert_eq!(MemFs::registrations().len(), 1);
}
