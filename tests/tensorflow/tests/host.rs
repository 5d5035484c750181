//! The plugins in TensorFlow without Python: its C API and the operators of its eager runtime.

use cargo_tf_plugin::TensorFlow;
use std::process::Command;
use std::time::Duration;
use tf_plugin_tensorflow_tests::{Example, child, each_tensorflow};

each_tensorflow!(memfs, localfs);

/// Ten times what it takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(600);

const HOST: &str = env!("CARGO_BIN_EXE_tensorflow-host");

fn memfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::memfs());
}

fn localfs(tensorflow: &TensorFlow) {
    run(tensorflow, &Example::localfs());
}

/// A process has room for one TensorFlow, so each gets its own.
fn run(tensorflow: &TensorFlow, example: &Example) {
    let mut command = Command::new(HOST);
    command
        .env("TF_CPP_MIN_LOG_LEVEL", "2")
        .env("TF_ENABLE_ONEDNN_OPTS", "0")
        .env("RUST_BACKTRACE", "1")
        .arg(tensorflow.library_dir())
        .arg(example.plugin.path())
        .arg(&example.root);
    let finished = child::run(command, LIMIT).success();
    let mut list = Command::new(HOST);
    list.arg("--list");
    let listed = child::run(list, LIMIT).success().stdout;
    let passed: Vec<&str> = finished
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("ok "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(passed, listed.lines().collect::<Vec<_>>(), "the cases that ran");
    print!("{}", finished.stdout);
}
