//! A device made with `se-plugin` in real TensorFlow.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow};

each_tensorflow!(
    tensors_go_there_and_back,
    a_second_load_adds_nothing,
    the_variable_switches_devices_off,
);

const SCRIPT: &str = "tensorflow/python/devices.py";

/// Names a plugin to load at import.
const LIBRARY: &str = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";

fn run(tensorflow: &TensorFlow, steps: &[String], devices: Option<&str>) {
    let library = Plugin::of("hostdevice").path();
    let mut python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library).args(steps);
    if let Some(devices) = devices {
        python = python.env("TF_SE_PLUGIN_DEVICES", devices);
    }
    let finished = python.run().success();
    let done: Vec<&str> =
        finished.stdout.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(done, steps);
}

fn tensors_go_there_and_back(tensorflow: &TensorFlow) {
    run(tensorflow, &["listed=1", "copies"].map(String::from), None);
}

fn a_second_load_adds_nothing(tensorflow: &TensorFlow) {
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[again.clone(), again, "listed=1".into(), "copies".into()], None);
}

fn the_variable_switches_devices_off(tensorflow: &TensorFlow) {
    run(tensorflow, &["listed=0"].map(String::from), Some("0"));
    run(tensorflow, &["listed=1", "copies"].map(String::from), Some("7"));
}
