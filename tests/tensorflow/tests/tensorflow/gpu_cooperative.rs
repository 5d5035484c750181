//! The device's products by cooperative matrices in real TensorFlow, on a lavapipe that has them.

use super::gpu::{LACKS_TYPES, file, made_no_mistake, run_python, sample};
use cargo_tf_plugin::NEWEST;
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::tensorflow;

const SETTING: &str = "RUST_GPU_COOPERATIVE_MATRICES";
const SAID: &str = "RUST_GPU multiplies float16 by cooperative matrices of";

fn sweep(ops: &[&str], settings: &[(&str, &str)]) -> Finished {
    let (name, sample) = sample(16);
    let fixed = [
        ("GALLIVM_PERF", "nopt"),
        ("RUST_GPU_TYPE", "RUST_GPU"),
        ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU"),
        LACKS_TYPES,
        (name, &*sample),
        ("TF_CPP_MIN_LOG_LEVEL", "0"),
    ];
    let python = lavapipe::newest::command(tensorflow(NEWEST).python());
    let python = Python::with_command(python, &file("refdevice_sweep"));
    let finished = run_python(python, Vec::new(), ops, &[&fixed[..], settings].concat());
    finished.must_have_done(ops);
    made_no_mistake(finished)
}

#[test]
fn products_answer_as_on_the_cpu() {
    let ops = [
        "BatchMatMulV2",
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv3D",
        "Einsum",
        "MatMul",
    ];
    let finished = sweep(&ops, &[]);
    assert!(finished.stderr.contains(SAID), "{}", finished.stderr);
}

#[test]
fn a_setting_leaves_them_unused() {
    let finished = sweep(&["BatchMatMulV2"], &[(SETTING, "0")]);
    assert!(!finished.stderr.contains(SAID), "{}", finished.stderr);
}
