//! A library can be both.

use se_plugin::{Platform, device_plugin};
use tf_fs_plugin::prelude::*;
use tf_plugin_ui_tests::device::D;

struct Both;

#[device_plugin]
impl Platform for Both {
    const NAME: &'static str = "BOTH";
    const TYPE: &'static str = "BOTH";
    type Device = D;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(0)
    }
    fn open(&self, _: usize) -> Result<D> {
        Err(Error::unavailable("no driver"))
    }
}

#[filesystem_plugin(scheme = "both")]
impl Filesystem for Both {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn path_exists(&self, _: Uri<'_>) -> Result<bool> {
        Ok(true)
    }
}

fn main() {}
