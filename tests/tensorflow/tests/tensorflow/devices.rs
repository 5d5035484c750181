//! A device made with `se-plugin` in real TensorFlow.

use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, TensorFlow, each_tensorflow, steps};

each_tensorflow!(
    kernels_compute_and_fail,
    work_that_fails_is_reported_later,
    variables_are_changed_in_place_where_tensorflow_lets_kernels;
    oldest and newest:
    a_second_load_adds_nothing,
    a_zero_switches_devices_off,
    another_number_leaves_them,
    a_filesystem_and_a_device_share_a_library,
);

const SCRIPT: &str = "tensorflow/python/devices.py";

fn run(tensorflow: &TensorFlow, steps: &[&str], settings: &[(&str, &str)]) {
    Python::steps(tensorflow, SCRIPT, "hostdevice", steps, settings);
}

steps! {
    kernels_compute_and_fail: [
        "listed=1", "copies", "computes", "threads", "zeros_like", "attributes", "ops", "fails", "other_types",
    ];
    work_that_fails_is_reported_later: ["fails_later"];
    a_zero_switches_devices_off: ["listed=0"], ("TF_SE_PLUGIN_DEVICES", "0");
    another_number_leaves_them: ["listed=1", "copies"], ("TF_SE_PLUGIN_DEVICES", "7");
}

/// Its kernels are registered once.
fn a_second_load_adds_nothing(tensorflow: &TensorFlow) {
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[&again, &again, "listed=1", "copies", "computes"], &[]);
}

fn variables_are_changed_in_place_where_tensorflow_lets_kernels(tensorflow: &TensorFlow) {
    let lets = !((2, 19)..=(2, 21)).contains(&tensorflow.major_minor());
    run(tensorflow, &[if lets { "variables" } else { "no_variables" }], &[]);
}

fn a_filesystem_and_a_device_share_a_library(tensorflow: &TensorFlow) {
    let steps = ["listed=1", "exists=both://here", "computes", "both"];
    Python::steps(tensorflow, SCRIPT, "bothfs", &steps, &[]);
}
