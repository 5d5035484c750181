//! `http://` as TensorFlow's own consumers read it: `python/https.py`.

use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow};

each_tensorflow!(consumers);

fn consumers(tensorflow: &TensorFlow) {
    let finished = Python::new(tensorflow, "tensorflow/python/https.py")
        .env("TF_PLUGIN_LIBRARY", Plugin::of("https").path())
        .in_a_fork()
        .run()
        .success();
    assert!(finished.stdout.lines().any(|line| line == "ok"), "{}", finished.stdout);
}
