//! The reference device in real TensorFlow.

use cargo_tf_plugin::TensorFlow;
use std::collections::{BTreeMap, BTreeSet};
use tf_plugin_conformance_tests::effort::{is_whole, one_in};
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, each_tensorflow, steps, tensorflow};

each_tensorflow!(
    each_op_computes_as_on_the_cpu,
    keras_trains_as_on_the_cpu,
    ops_on_variables_compute_as_on_the_cpu,
    a_trace_shows_the_kernels;
    oldest and newest:
    trains_with_late_streams,
    constants_of_functions_wait_for_earlier_work,
    there_can_be_several_devices,
    memory_ends_with_an_error,
    settings_that_are_not_understood_leave_the_cpu,
);

const SCRIPT: &str = "tensorflow/python/refdevice.py";

fn run(tensorflow: &TensorFlow, steps: &[&str], settings: &[(&str, &str)]) -> Finished {
    Python::steps(tensorflow, SCRIPT, "refdevice", steps, settings)
}

fn each_op_computes_as_on_the_cpu(tensorflow: &TensorFlow) {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    // The device changes variables in place, and adds lists, only where TensorFlow lets it.
    let in_place = !((2, 19)..=(2, 21)).contains(&tensorflow.major_minor());
    let finished = Python::new(tensorflow, "tensorflow/python/refdevice_sweep.py")
        .env(LIBRARY, Plugin::of("refdevice").path())
        .env("REFDEVICE_COUNTERS", scratch.path().join("counters"))
        .env("REFDEVICE_SWEEP_VARIABLES", if in_place { "1" } else { "0" })
        .env("TF_PLUGIN_SWEEP_SAMPLE", one_in(4).to_string())
        .in_a_fork()
        .run()
        .success();
    let swept = finished.done().len();
    assert!(swept > 60, "{swept} operations: {}", finished.stdout);
}

fn keras_trains_as_on_the_cpu(tensorflow: &TensorFlow) {
    // The last two have a branch and loops that TensorFlow does not lower, as Keras requests XLA.
    let steps = [
        "dense,sgd",
        "dense,momentum",
        "convolutional,adam",
        "dense,adam",
        "dense,scaled",
        "recurrent,adam",
    ];
    let chosen = if is_whole() { &steps[..] } else { &steps[4..] };
    let steps: Vec<_> = chosen.iter().map(|step| format!("train={step}")).collect();
    let mut steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    steps.push("eager");
    run(tensorflow, &steps, &[]);
}

/// Operations of a transformer's training step that run on the CPU, as they do beside a GPU: what computes shapes, and
/// int32, which TensorFlow keeps on the host.
const ON_THE_CPU: [&str; 5] = ["Const", "Pack", "Prod", "StridedSlice", "_Arg"];

/// With work that is late, so that what does not wait for it reads old values.
fn ops_on_variables_compute_as_on_the_cpu(tensorflow: &TensorFlow) {
    let steps = ["methods", "optimizers", "random", "order", "eager"];
    let (script, delay) = ("tensorflow/python/variables.py", ("REFDEVICE_DELAY_US", "100"));
    Python::steps(tensorflow, script, "refdevice", &steps, &[delay]);
}

/// In the newest release alone: before Keras 3 an embedding needs a kernel with variables.
#[test]
fn a_transformer_trains_as_on_the_cpu() {
    let settings = [("TF_CPP_MIN_LOG_LEVEL", "0")];
    let tensorflow = tensorflow(cargo_tf_plugin::NEWEST);
    let finished = run(&tensorflow, &["transformer"], &settings);
    let (_, step) = finished.stderr.split_once("--- the device\n").expect("the step");
    let (step, _) = step.split_once("---\n").expect("its end");
    // As in `placer.cc:162] step/Mul: (Mul): /job:localhost/replica:0/task:0/device:CPU:0`.
    let mut places = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in step.lines() {
        if let Some((op, place)) =
            line.split_once(": (").and_then(|(_, rest)| rest.split_once("): "))
        {
            places.entry(place.rsplit('/').next().expect("a device")).or_default().insert(op);
        }
    }
    let device = &places["device:RUST_REF:0"];
    for op in
        ["BatchMatMulV2", "Einsum", "Erfc", "GatherV2", "MatrixBandPart", "UnsortedSegmentSum"]
    {
        assert!(device.contains(op), "{op} is not on the device: {places:?}");
    }
    let needless: Vec<_> =
        places["device:CPU:0"].iter().filter(|op| !ON_THE_CPU.contains(op)).collect();
    assert!(needless.is_empty(), "on the CPU without need: {needless:?}");
}

/// TensorFlow drops the error, and raises a `CancelledError` of the function that waits for it.
#[test]
fn an_error_that_tensorflow_drops_is_logged() {
    let finished = run(&tensorflow(cargo_tf_plugin::NEWEST), &["fails"], &[]);
    let message = "failed: the images have 4 channels and the filter is for 2";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
}

steps! {
    trains_with_late_streams:
        ["train=convolutional,momentum"], ("REFDEVICE_DELAY_US", "300"), ("REFDEVICE_SEED", "5");
    constants_of_functions_wait_for_earlier_work: ["constants"], ("REFDEVICE_DELAY_US", "20000");
    there_can_be_several_devices: ["devices=3"], ("REFDEVICE_DEVICES", "3");
    memory_ends_with_an_error: ["memory"], ("REFDEVICE_MEMORY", "64MiB");
    a_trace_shows_the_kernels: ["trace"];
}

fn settings_that_are_not_understood_leave_the_cpu(tensorflow: &TensorFlow) {
    let finished = run(tensorflow, &["refused"], &[("REFDEVICE_MEMORY", "much")]);
    let message = "REFDEVICE_MEMORY=much is not understood; write REFDEVICE_MEMORY=512MiB";
    let lines = finished.stderr.lines().filter(|line| line.contains(message)).count();
    assert_eq!(lines, 1, "{}", finished.stderr);
}
