//! A device made with `se-plugin` in real TensorFlow.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow};

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

fn run(tensorflow: &TensorFlow, steps: &[&str]) {
    Python::steps(tensorflow, SCRIPT, "hostdevice", steps, &[]);
}

fn tensors_go_there_and_back(tensorflow: &TensorFlow) {
    run(tensorflow, &["listed=1", "copies"]);
}

fn a_second_load_adds_nothing(tensorflow: &TensorFlow) {
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[&again, &again, "listed=1", "copies"]);
}

fn the_variable_switches_devices_off(tensorflow: &TensorFlow) {
    let run = |steps: &[&str], devices| {
        let settings = [("TF_SE_PLUGIN_DEVICES", devices)];
        Python::steps(tensorflow, SCRIPT, "hostdevice", steps, &settings);
    };
    run(&["listed=0"], "0");
    run(&["listed=1", "copies"], "7");
}

fn kernels_compute(tensorflow: &TensorFlow) {
    run(tensorflow, &["computes", "threads", "zeros_like", "other_types"]);
    // Kernels are registered once.
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[&again, "computes"]);
}

fn kernels_that_do_something_wrong_raise_errors(tensorflow: &TensorFlow) {
    run(tensorflow, &["fails"]);
}

fn work_that_fails_is_reported_later(tensorflow: &TensorFlow) {
    run(tensorflow, &["fails_later"]);
}

fn variables_are_changed_in_place_where_tensorflow_lets_kernels(tensorflow: &TensorFlow) {
    let lets = !((2, 19)..=(2, 21)).contains(&tensorflow.major_minor());
    run(tensorflow, &[if lets { "variables" } else { "no_variables" }]);
}

fn kernels_read_attributes(tensorflow: &TensorFlow) {
    run(tensorflow, &["attributes"]);
}

fn new_ops_have_shapes(tensorflow: &TensorFlow) {
    run(tensorflow, &["ops"]);
}

fn a_filesystem_and_a_device_share_a_library(tensorflow: &TensorFlow) {
    let steps = ["listed=1", "exists=both://here", "computes"];
    Python::steps(tensorflow, SCRIPT, "bothfs", &steps, &[]);
}
