//! What TensorFlow's own consumers do with files, from Python: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Example, each_tensorflow, scenarios};

each_tensorflow!(memfs, localfs);

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs(), &["--lacks", "memory_region"]);
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs(), &[]);
}

fn run(tensorflow: &TensorFlow, example: &Example, options: &[&str]) {
    let python = Python::new(tensorflow, scenarios::SCRIPT)
        .arg("--plugin")
        .arg(example.plugin.path())
        .args(["--root", &example.root])
        .args(options);
    scenarios::run(tensorflow, example.package, python, &[]);
}
