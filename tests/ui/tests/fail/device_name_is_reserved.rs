//! TensorFlow has a platform of this name, and would abort.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::no_devices;

struct P;

#[device_plugin]
impl Platform for P {
    const NAME: &'static str = "CUDA";
    const TYPE: &'static str = "MY_DEVICE";
    no_devices!();
}

fn main() {}
