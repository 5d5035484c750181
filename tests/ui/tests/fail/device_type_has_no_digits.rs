//! TensorFlow takes capital letters and underscores only, and would abort.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::D;

struct P;

#[device_plugin]
impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "GPU_2";
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
