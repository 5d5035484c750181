//! The plugins in TensorFlow without Python: a process that uses them for long does not grow.

use cargo_tf_plugin::TensorFlow;
use std::process::Command;
use std::time::Duration;
use tf_plugin_tensorflow_tests::{Example, child, each_tensorflow};

each_tensorflow!(memfs, localfs);

/// Ten times what it takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(600);

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs());
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs());
}

/// A process has room for one TensorFlow, so each gets its own.
fn run(tensorflow: &TensorFlow, example: &Example) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorflow-host"));
    command
        .env("TF_CPP_MIN_LOG_LEVEL", "2")
        .env("TF_ENABLE_ONEDNN_OPTS", "0")
        .env("RUST_BACKTRACE", "1")
        .arg(tensorflow.library_dir())
        .arg(example.plugin.path())
        .arg(&example.root);
    print!("{}", child::run(command, LIMIT).success().stdout);
}
