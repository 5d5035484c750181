//! The graph pass and the profiler implement their traits.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::device::D;

struct P;

struct Pass;

struct Profile;

#[device_plugin(graph_pass = Pass, profiler = Profile)]
impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "MINE";
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
