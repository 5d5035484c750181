//! TensorFlow has kernels for devices of this type.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::no_devices;

struct P;

#[device_plugin]
impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "GPU";
    no_devices!();
}

fn main() {}
