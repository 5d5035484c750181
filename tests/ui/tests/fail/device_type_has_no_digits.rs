//! TensorFlow takes capital letters and underscores only, and would abort.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::no_devices;

struct P;

#[device_plugin]
impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "GPU_2";
    no_devices!();
}

fn main() {}
