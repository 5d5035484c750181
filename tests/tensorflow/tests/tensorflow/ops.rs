//! The ops of the tutorial, and ops with mistakes, in real TensorFlow.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, each_tensorflow};

each_tensorflow!(
    ops_compute,
    a_saved_model_is_loaded_without_an_import,
    mistakes_in_ops_abort_nothing
);

const SCRIPT: &str = "tensorflow/python/ops.py";

/// Runs a script after it has loaded the library as users of `tf.load_op_library` do.
fn run(tensorflow: &TensorFlow, script: &str, library: &'static str, steps: &[String]) {
    let load = format!("load={}", Plugin::of(library).path().display());
    let steps = [&[load], steps].concat();
    let finished = Python::new(tensorflow, script).args(&steps).in_a_fork().run().success();
    finished.must_have_done(&steps);
}

fn ops_compute(tensorflow: &TensorFlow) {
    let steps = ["eager", "gradient", "graph", "data", "empty", "errors", "threads", "forks"];
    run(tensorflow, SCRIPT, "textops", &steps.map(String::from));
}

fn mistakes_in_ops_abort_nothing(tensorflow: &TensorFlow) {
    let steps = ["twice", "kept", "shapes", "panics"];
    run(tensorflow, "tensorflow/python/wrong_ops.py", "wrongops", &steps.map(String::from));
}

fn a_saved_model_is_loaded_without_an_import(tensorflow: &TensorFlow) {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let model = scratch.path().join("model").display().to_string();
    run(tensorflow, SCRIPT, "textops", &[format!("save={model}")]);
    // TensorFlow loads the library as it does one in `site-packages/tensorflow-plugins/`.
    let python = Python::new(tensorflow, SCRIPT).env(LIBRARY, Plugin::of("textops").path());
    let step = format!("restore={model}");
    python.arg(&step).in_a_fork().run().success().must_have_done(&[step]);
}
