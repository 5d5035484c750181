//! TensorFlow needs one concrete type.

use tf_fs_plugin::prelude::*;

struct Cache<T>(T);

#[filesystem_plugin(scheme = "mem")]
impl<T: Send + Sync + Default + 'static> Filesystem for Cache<T> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(T::default()))
    }
}

fn main() {}
