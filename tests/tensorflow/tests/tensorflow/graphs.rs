//! Graph passes and profilers made with `se-plugin` in real TensorFlow.

use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, TensorFlow, each_tensorflow, steps};

each_tensorflow!(
    a_pass_rewrites_graphs_on_the_device,
    functions_for_xla_run,
    a_profile_has_what_the_device_did;
    oldest and newest:
    a_second_load_changes_nothing,
    a_failing_pass_leaves_the_graph_and_what_the_sdk_has_mended,
);

const SCRIPT: &str = "tensorflow/python/graphs.py";

fn run(tensorflow: &TensorFlow, steps: &[&str], settings: &[(&str, &str)]) -> Finished {
    Python::steps(tensorflow, SCRIPT, "hostdevice", steps, settings)
}

steps! {
    functions_for_xla_run: ["jit"];
    a_profile_has_what_the_device_did: ["profile=1", "profile=1"];
}

fn a_pass_rewrites_graphs_on_the_device(tensorflow: &TensorFlow) {
    let finished = run(tensorflow, &["constant=5432.25", "elsewhere"], &[]);
    assert!(!finished.stderr.contains("PluggableGraphOptimizer failed"), "{}", finished.stderr);
}

fn a_failing_pass_leaves_the_graph_and_what_the_sdk_has_mended(tensorflow: &TensorFlow) {
    for (pass, message) in [
        ("error", "requested it"),
        ("panic", "plugin panicked in `optimize_func`"),
        ("break", "there is no node `no such node`"),
    ] {
        let setting = [("HOSTDEVICE_GRAPH_PASS", pass)];
        let finished = run(tensorflow, &["constant=1234.5", "jit"], &setting);
        let told = finished
            .stderr
            .lines()
            .any(|line| line.contains("PluggableGraphOptimizer failed") && line.contains(message));
        assert!(told, "{pass}: {}", finished.stderr);
    }
}

fn a_second_load_changes_nothing(tensorflow: &TensorFlow) {
    let again = format!("load={}", Plugin::of("hostdevice").path().display());
    run(tensorflow, &[&again, &again, "constant=5432.25", "profile=1", "jit"], &[]);
}
