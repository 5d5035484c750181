//! What TensorFlow and Keras do with files, from Python: `tests/python/scenarios.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::{Example, each_tensorflow, scenarios};

each_tensorflow!(memfs, localfs);

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs());
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs());
}

fn run(tensorflow: &TensorFlow, example: &Example) {
    scenarios::run(tensorflow, scenarios::python(tensorflow, example.package, &example.root));
}
