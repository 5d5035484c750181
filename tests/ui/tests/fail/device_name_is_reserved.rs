//! TensorFlow has a platform of this name, and would abort.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::D;

struct P;

#[device_plugin]
impl Platform for P {
    const NAME: &'static str = "CUDA";
    const TYPE: &'static str = "MY_DEVICE";
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

fn main() {}
