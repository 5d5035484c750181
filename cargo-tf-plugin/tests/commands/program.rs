//! The command under test, and the libraries that it builds.

use crate::output::{json, root};
use crate::overlay::Overlay;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Turns off the optimiser: `refdevice` alone would take two minutes of CPU time. `tests/tensorflow` tests the
/// libraries that users get, with the feature `optimised`. Python collects garbage rarely; lavapipe compiles fast.
pub(crate) fn quick(mut command: Command) -> Command {
    command.env("GALLIVM_PERF", "nopt");
    command.env("PYTHONPATH", root().join("tests/python/few_collections"));
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    command
}

/// The command, for which the workspace has built its packages: in the profile `dev`, with the features of `cargo test
/// --workspace`. With `matrix` it builds them alone, in the profile that users get.
fn with_packages(command: Command) -> Command {
    let mut command = quick(command);
    if !cfg!(feature = "matrix") {
        command.env("CARGO", root().join("cargo-tf-plugin/tests/commands/scripts/cargo.sh"));
        command.env("TF_PLUGIN_TEST_CARGO", env!("CARGO")).env("TF_PLUGIN_PROFILE", "dev");
    }
    command
}

pub(crate) fn tool() -> Command {
    with_packages(Command::new(env!("CARGO_BIN_EXE_cargo-tf-plugin")))
}

/// Returns the command with SIGINT as in a terminal, so that Ctrl-C ends it. A shell script starts
/// background processes with SIGINT ignored, and every program inherits that.
pub(crate) fn interruptible() -> Command {
    let mut command = with_packages(Command::new("env"));
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_cargo-tf-plugin")]);
    command
}

/// Returns the command with this subcommand in the workspace, with a TensorFlow release, and no user settings.
pub(crate) fn with_tensorflow(version: &str, subcommand: &str) -> Command {
    TensorFlow::pinned(version).expect("TensorFlow is provided");
    let mut command = tool();
    command.current_dir(root()).args(["tf-plugin", subcommand, "--tf", version]);
    let settings = "LD_PRELOAD NO_COLOR TF_FS_PLUGIN_AUTOLOAD TF_PLUGGABLE_DEVICE_LIBRARY_PATH TF_SE_PLUGIN_DEVICES";
    for name in settings.split(' ') {
        command.env_remove(name);
    }
    command.env("TF_CPP_MIN_LOG_LEVEL", "2").env("TF_ENABLE_ONEDNN_OPTS", "0");
    command
}

/// Returns the library of a package of the workspace, as the command builds it.
#[track_caller]
pub(crate) fn plugin(package: &str) -> PathBuf {
    let mut command = tool();
    command.current_dir(root()).args(["tf-plugin", "build", "--json", "--package", package]);
    json(&mut command)["path"].as_str().expect("a path").into()
}

/// Creates a virtual environment with the packages of the newest TensorFlow, which loads plugins of
/// these packages. Each is followed by the name of its file.
pub(crate) fn environment(plugins: &[(&str, &str)]) -> Overlay {
    let environment = Overlay::new(&TensorFlow::pinned(NEWEST).expect("TensorFlow is provided"));
    for (package, name) in plugins {
        let copy = environment.plugins().join(name);
        fs::copy(plugin(package), copy).expect("a copy");
    }
    environment
}
