//! Operations run on any thread.

use std::rc::Rc;
use tf_fs_plugin::prelude::*;

struct MemFs {
    _files: Rc<u8>,
}

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self { _files: Rc::new(0) })
    }
}

fn main() {}
