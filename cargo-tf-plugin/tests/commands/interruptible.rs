//! The command, so that Ctrl-C ends it.

use std::process::Command;

/// The command with SIGINT as in a terminal: where the tests are started in the background of a script it is ignored,
/// and every program inherits that.
pub(crate) fn tool() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_cargo-tf-plugin")]);
    command
}
