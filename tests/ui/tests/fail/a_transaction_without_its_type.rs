//! The method that needs it is named.

use std::sync::Arc;
use tf_fs_plugin::prelude::*;

struct MemFs;

struct Tx;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn start_transaction(&self) -> Result<Arc<Tx>> {
        Ok(Arc::new(Tx))
    }

    fn end_transaction(&self, _: Arc<Tx>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
