//! The graph pass and the profiler implement their traits.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::no_devices;

struct P;

struct Pass;

struct Profile;

#[device_plugin(graph_pass = Pass, profiler = Profile)]
impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "MINE";
    no_devices!();
}

fn main() {}
