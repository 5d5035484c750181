//! Python with TensorFlow.

use crate::child::{self, Finished};
use crate::fork_server;
use crate::{LIBRARY, Plugin, script};
use cargo_tf_plugin::TensorFlow;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long one Python process may take: some three times what the slowest needs on two busy cores.
const LIMIT: Duration = Duration::from_secs(1800);

/// A Python process to be. What surrounds the tests has no influence on it.
#[derive(Debug)]
#[must_use]
pub struct Python {
    pub(crate) command: Command,
    limit: Duration,
    is_a_fork: bool,
}

impl Python {
    /// The Python of a TensorFlow release running a script of this project's `tests` directory.
    pub fn new(tensorflow: &TensorFlow, name: &str) -> Self {
        Self::with_interpreter(tensorflow.python(), name)
    }

    /// As [`Python::new`] with another interpreter.
    pub fn with_interpreter(interpreter: &Path, name: &str) -> Self {
        Self::with_command(Command::new(interpreter), name)
    }

    /// The same with a command that starts an interpreter.
    pub fn with_command(mut command: Command, name: &str) -> Self {
        for (name, _) in env::vars_os() {
            let name_text = name.to_string_lossy();
            let matters = ["TF_", "PYTHON", "KERAS_", "RUST_", "LD_", "MALLOC_"];
            if matters.iter().any(|prefix| name_text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command
            // Tracebacks for crashes and for the end of the time limit.
            .env("PYTHONFAULTHANDLER", "1")
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .env("TF_ENABLE_ONEDNN_OPTS", "0")
            // A plugin warns why it has no device. Forks share a process only if their level is the same.
            .env("TF_CPP_MIN_LOG_LEVEL", "1")
            // The scripts for which it matters how a process ends undo part of it.
            .env("PYTHONPATH", script("python/few_collections"))
            .arg(script(name));
        Self { command, limit: LIMIT, is_a_fork: false }
    }

    /// Runs `steps` of a script on a plugin that is loaded at import, with `settings` in the environment. All must succeed.
    #[track_caller]
    pub fn steps(
        tensorflow: &TensorFlow,
        script: &str,
        plugin: &'static str,
        steps: &[&str],
        settings: &[(&str, &str)],
    ) -> Finished {
        let python = Self::new(tensorflow, script).env(LIBRARY, Plugin::of(plugin).path());
        let python = python.envs(settings.iter().copied()).args(steps);
        let finished = python.in_a_fork().run().success();
        finished.must_have_done(steps);
        finished
    }

    /// Runs code in a fork, after `set` has set what it needs.
    pub fn code(tensorflow: &TensorFlow, code: &str, set: impl FnOnce(Self) -> Self) -> Finished {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let path = directory.path().join("script.py");
        fs::write(&path, code).expect("written");
        set(Self::new(tensorflow, path.to_str().expect("UTF-8"))).in_a_fork().run()
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets environment variables.
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.command.envs(settings);
        self
    }

    /// Leaves an environment variable unset.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the time limit in seconds.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs the script in a fork of a process that has imported TensorFlow, which saves 3 s of CPU time. The fork
    /// loads the plugins that the environment names as the import does. Not for tests of the import, of how a process
    /// ends, or of packages in `PYTHONPATH`.
    pub fn in_a_fork(mut self) -> Self {
        self.is_a_fork = true;
        self
    }

    /// Runs it to its end, successful or not.
    #[must_use]
    pub fn run(self) -> Finished {
        if self.is_a_fork {
            return fork_server::run(&self.command, self.limit);
        }
        child::run(self.command, self.limit)
    }
}
