//! The programs that load TensorFlow and run cases.

use serde_json::Value;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first Python code. It reads the rest from standard input, which has no limit of length.
const START: &str = "import sys; exec(compile(sys.stdin.read(), '<cases>', 'exec'))";

/// The Python code that runs the cases.
const RUNNER: &str = include_str!("runner.py");

/// Tells a test of this executable to run the cases, and where TensorFlow's C library is.
pub(super) const WORK_VARIABLE: &str = "TF_PLUGIN_TEST_WORK";

/// A program that loads TensorFlow and runs cases.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// This interpreter.
    Python(PathBuf),
    /// This executable again: the test of this name [runs the cases](super::work). TensorFlow's C
    /// library is in the directory.
    Test { name: String, directory: PathBuf },
}

impl Program {
    /// Returns the command, which loads `library` when TensorFlow is imported.
    pub(super) fn command(&self, library: Option<&Path>) -> Command {
        match self {
            Self::Python(interpreter) => {
                let mut command = Command::new(interpreter);
                command.args(["-c", START]).env("PYTHONUNBUFFERED", "1");
                match library {
                    Some(library) => command.env("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library),
                    None => command.env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH"),
                };
                command
            }
            Self::Test { name, directory } => {
                let executable = env::current_exe()
                    .unwrap_or_else(|error| panic!("this executable is not found: {error}"));
                let mut command = Command::new(executable);
                // On the main thread, whose stack is that of a program: with one thread, tests run there.
                command
                    .args([name, "--exact", "--nocapture", "--test-threads=1"])
                    .env(WORK_VARIABLE, directory)
                    .env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
                // As in `runner.py`: no log messages, and results that do not depend on the CPU.
                for (name, value) in [("TF_CPP_MIN_LOG_LEVEL", "2"), ("TF_ENABLE_ONEDNN_OPTS", "0")]
                {
                    if env::var_os(name).is_none() {
                        command.env(name, value);
                    }
                }
                command
            }
        }
    }

    /// Returns the input of the process: Python also reads a program.
    pub(super) fn input(&self, program: &str, request: &Value) -> Vec<String> {
        match self {
            Self::Python(_) => {
                // A JSON string is also a Python string.
                let request = format!("REQUEST = {}\n", Value::String(request.to_string()));
                vec![request, format!("{RUNNER}\n"), format!("{program}\n")]
            }
            Self::Test { .. } => vec![request.to_string()],
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python(interpreter) => write!(f, "{}", interpreter.display()),
            Self::Test { directory, .. } => write!(f, "TensorFlow in {}", directory.display()),
        }
    }
}
