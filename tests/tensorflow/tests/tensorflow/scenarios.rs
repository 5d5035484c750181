//! What TensorFlow's own consumers do with files, from Python: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::{Example, each_tensorflow, scenarios};

each_tensorflow!(memfs, localfs);

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs(), &["memory_region"]);
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs(), &[]);
}

fn run(tensorflow: &TensorFlow, example: &Example, lacks: &[&str]) {
    let python = scenarios::python(tensorflow, example.package, &example.root, lacks);
    scenarios::run(tensorflow, example.package, python, &[]);
}
