//! What `#[cfg]` removes exports nothing, wherever the attribute stands.

#![deny(warnings)]
#![allow(clippy::non_minimal_cfg, reason = "a condition that always holds is the case")]

use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::prelude::*;

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
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

#[test]
fn what_cfg_removes_is_not_registered() {
    assert_eq!(MemFs::registrations()[0].scheme(), "three");
    assert_eq!(MemFs::registrations().len(), 1);
}
