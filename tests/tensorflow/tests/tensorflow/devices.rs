//! A device made with `se-plugin` in real TensorFlow.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, each_tensorflow};

each_tensorflow!(
    tensors_go_there_and_back,
    kernels_compute,
    kernels_that_do_something_wrong_raise_errors,
    work_that_fails_is_reported_later,
    variables_are_changed_in_place_where_tensorflow_lets_kernels,
    kernels_read_attributes,
    new_ops_have_shapes;
    oldest and newest:
    a_second_load_adds_nothing,
    the_variable_switches_devices_off,
    a_filesystem_and_a_device_share_a_library,
);

const SCRIPT: &str = "tensorflow/python/devices.py";

fn run(tensorflow: &TensorFlow, steps: &[String], devices: Option<&str>) {
    run_plugin(tensorflow, "hostdevice", steps, devices);
}

fn run_plugin(
    tensorflow: &TensorFlow,
    plugin: &'static str,
    steps: &[String],
    devices: Option<&str>,
) {
    let library = Plugin::of(plugin).path();
    let mut python = Python::new(tensorflow, SCRIPT).env(LIBRARY, library).args(steps);
    if let Some(devices) = devices {
        python = python.env("TF_SE_PLUGIN_DEVICES", devices);
    }
    let finished = python.in_a_fork().run().success();
    assert_eq!(finished.done(), steps);
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

fn kernels_compute(tensorflow: &TensorFlow) {
    let steps = ["computes", "threads", "zeros_like", "other_types"];
    run(tensorflow, &steps.map(String::from), None);
    // Kernels are registered once.
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[again, "computes".into()], None);
}

fn kernels_that_do_something_wrong_raise_errors(tensorflow: &TensorFlow) {
    run(tensorflow, &["fails"].map(String::from), None);
}

fn work_that_fails_is_reported_later(tensorflow: &TensorFlow) {
    run(tensorflow, &["fails_later"].map(String::from), None);
}

fn variables_are_changed_in_place_where_tensorflow_lets_kernels(tensorflow: &TensorFlow) {
    let step = match tensorflow.version() {
        "2.19.1" | "2.20.0" | "2.21.0" => "no_variables",
        _ => "variables",
    };
    run(tensorflow, &[step].map(String::from), None);
}

fn kernels_read_attributes(tensorflow: &TensorFlow) {
    run(tensorflow, &["attributes"].map(String::from), None);
}

fn new_ops_have_shapes(tensorflow: &TensorFlow) {
    run(tensorflow, &["ops"].map(String::from), None);
}

fn a_filesystem_and_a_device_share_a_library(tensorflow: &TensorFlow) {
    let steps = ["listed=1", "exists=both://here", "computes"].map(String::from);
    run_plugin(tensorflow, "bothfs", &steps, None);
}
