//! The command that the tests run, and what it builds for them.

use crate::said::{root, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Leaves out the optimiser: `refdevice` alone would take two minutes of processor time. The libraries that users get
/// are tested by `tests/tensorflow` with the feature `optimised`.
pub(crate) fn unoptimised(mut command: Command) -> Command {
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    command
}

/// The command.
pub(crate) fn tool() -> Command {
    unoptimised(Command::new(env!("CARGO_BIN_EXE_cargo-tf-plugin")))
}

/// The command with SIGINT as in a terminal, so that Ctrl-C ends it: where the tests are started in the background of a
/// script it is ignored, and every program inherits that.
pub(crate) fn interruptible() -> Command {
    let mut command = unoptimised(Command::new("env"));
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_cargo-tf-plugin")]);
    command
}

/// The library of a package of the workspace, as the command builds it.
#[track_caller]
pub(crate) fn plugin(package: &str) -> PathBuf {
    let mut command = tool();
    command.current_dir(root()).args(["tf-plugin", "build", "--json", "--package", package]);
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{}", text(&output));
    let known: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    known["path"].as_str().expect("a path").into()
}
