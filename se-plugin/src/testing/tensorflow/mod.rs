//! The cases for devices that run in a real TensorFlow.
//!
//! [`conformance!`](crate::conformance) makes one test of them, which `cargo tf-plugin test` runs once for each
//! TensorFlow that it is told of. Alone that test says so and does nothing.

mod list;

pub use list::python_cases;

use std::path::PathBuf;
use std::time::Duration;
use tf_fs_plugin::testing::__private::{RUNNER, serde_json::json, start_limit};
use tf_fs_plugin::testing::{Answer, Job, Program, PythonCase};

/// What the cases for devices are.
const PROGRAM: Program = Program { text: &[RUNNER, include_str!("device.py")] };

/// Runs the [cases](python_cases) for devices in a real TensorFlow, from Python.
///
/// ```no_run
/// use se_plugin::testing::{Python, Verdict};
/// let python = Python::new("venv/bin/python", "target/release/librefdevice.so");
/// for answer in python.run("RUST_REF") {
///     assert!(!matches!(answer.verdict, Verdict::Failed(_)), "{answer:?}");
/// }
/// ```
#[derive(Debug)]
pub struct Python {
    interpreter: PathBuf,
    library: PathBuf,
    environment: Vec<(String, String)>,
    without: Vec<(String, String)>,
    limit: Duration,
    start_limit: Option<Duration>,
}

impl Python {
    /// With an interpreter that has TensorFlow, and a plugin, which is loaded when it imports TensorFlow.
    #[must_use]
    pub fn new(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self {
            interpreter: interpreter.into(),
            library: library.into(),
            environment: Vec::new(),
            without: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        }
    }

    /// Sets an environment variable of TensorFlow's process: settings of the plugin.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Leaves out the case of this name.
    #[must_use]
    pub fn without(mut self, case: impl Into<String>, reason: impl Into<String>) -> Self {
        self.without.push((case.into(), reason.into()));
        self
    }

    /// How long a case may take; 120 seconds if nothing is said.
    #[must_use]
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// How long TensorFlow may take to load the plugin and come to the first case, and to end after the last one; 120
    /// seconds if nothing is said, or as long as a case may take if that is more.
    #[must_use]
    pub fn start_limit(self, limit: Duration) -> Self {
        Self { start_limit: Some(limit), ..self }
    }

    /// The cases for devices, in their order.
    #[must_use]
    pub fn all() -> &'static [&'static PythonCase] {
        list::ALL
    }

    /// Runs all cases on the first device of this type. They share a process, and so TensorFlow and the plugin; one
    /// that crashes or hangs has failed, and the others go on in a new process.
    ///
    /// # Panics
    /// When the interpreter does not run, has no TensorFlow, or the plugin cannot be loaded, or not in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, device_type: &str) -> Vec<Answer> {
        let job = Job {
            interpreter: &self.interpreter,
            library: Some(&self.library),
            environment: &self.environment,
            settings: json!({ "library": self.library, "type": device_type }),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        let reason = |case: &PythonCase| {
            let found = self.without.iter().find(|(name, _)| name == case.name);
            found.map(|(_, reason)| reason.clone())
        };
        PROGRAM.run(&job, Self::all().iter().map(|case| (*case, reason(case))).collect())
    }
}
