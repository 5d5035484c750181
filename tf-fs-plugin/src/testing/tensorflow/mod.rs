//! The cases that run in a real TensorFlow.
//!
//! [`conformance!`](crate::conformance) makes one test of them, which `cargo tf-plugin test` runs once for each
//! TensorFlow that it is told of: it names the interpreter and the plugin's library in the environment. Alone that
//! test says so and does nothing. [`Python`] is for those who run the cases by themselves.

mod list;
mod process;

pub use list::python_cases;
pub use process::{Asked, Job, Program, start_limit};

use super::conformance::{Append, Declared, Directories, Verdict, Visible};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A question that a filesystem or a device is asked through a real TensorFlow, from Python. Those about filesystems
/// are in [`python_cases`].
#[derive(Debug)]
#[non_exhaustive]
pub struct PythonCase {
    /// The name, by which `without` of [`conformance!`](crate::conformance) leaves it out.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
    /// What it asks for, in Markdown.
    pub asks: &'static str,
    /// Why users of TensorFlow care.
    pub why: &'static str,
    /// The cases of the process that ask for the same: without one of them there is nothing to ask here.
    pub follows: &'static [&'static str],
}

impl PythonCase {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        name: &'static str,
        group: &'static str,
        asks: &'static str,
        why: &'static str,
        follows: &'static [&'static str],
    ) -> Self {
        Self { name, group, asks, why, follows }
    }
}

/// What a case came to in a TensorFlow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The case.
    pub case: &'static PythonCase,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// Runs the [cases](python_cases) for filesystems in a real TensorFlow, from Python.
///
/// ```no_run
/// use tf_fs_plugin::testing::{Python, Verdict};
/// let python = Python::new("venv/bin/python", "target/release/libmemfs.so");
/// for answer in python.run("mem://box/") {
///     assert!(!matches!(answer.verdict, Verdict::Failed(_)), "{answer:?}");
/// }
/// ```
#[derive(Debug)]
pub struct Python {
    interpreter: PathBuf,
    library: PathBuf,
    declared: Declared,
    environment: Environment,
    without: Vec<(String, String)>,
    limit: Duration,
    start_limit: Option<Duration>,
}

type Environment = Vec<(String, String)>;

/// What the cases for filesystems are.
const PROGRAM: Program = Program { text: &[RUNNER, include_str!("filesystem.py")] };

/// What runs the cases.
#[doc(hidden)]
pub const RUNNER: &str = include_str!("runner.py");

impl Python {
    /// With an interpreter that has TensorFlow, and a plugin, which is loaded when it imports TensorFlow.
    #[must_use]
    pub fn new(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self {
            interpreter: interpreter.into(),
            library: library.into(),
            declared: Declared::default(),
            environment: Vec::new(),
            without: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        }
    }

    /// A URI that the filesystem can never accept.
    #[must_use]
    pub fn malformed(mut self, uri: impl Into<String>) -> Self {
        self.declared.malformed = Some(uri.into());
        self
    }

    /// When others see a file that is being written.
    #[must_use]
    pub fn visible(mut self, visible: Visible) -> Self {
        self.declared.visible = visible;
        self
    }

    /// What a directory is.
    #[must_use]
    pub fn directories(mut self, directories: Directories) -> Self {
        self.declared.directories = directories;
        self
    }

    /// Whether files that exist can be appended to.
    #[must_use]
    pub fn append(mut self, append: Append) -> Self {
        self.declared.append = append;
        self
    }

    pub(super) fn declared(self, declared: Declared) -> Self {
        Self { declared, ..self }
    }

    /// Sets an environment variable of TensorFlow's process: settings of the plugin.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Leaves out the case of this name, and those that ask for the same as the case of the process of this name.
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

    /// The cases for filesystems, in their order.
    #[must_use]
    pub fn all() -> &'static [&'static PythonCase] {
        list::ALL
    }

    fn cases(&self) -> Vec<(&'static PythonCase, Option<String>)> {
        let reason = |case: &PythonCase| {
            let of = |name: &String| name == case.name || case.follows.contains(&name.as_str());
            self.without.iter().find(|(name, _)| of(name)).map(|(_, reason)| reason.clone())
        };
        Self::all().iter().map(|case| (*case, reason(case))).collect()
    }

    fn settings(&self, root: &str, local: &Path) -> serde_json::Value {
        json!({
            "library": self.library,
            "scheme": root.split_once("://").map_or("", |(scheme, _)| scheme),
            "root": root,
            "local": local,
            "malformed": self.declared.malformed,
            "real": self.declared.directories == Directories::Real,
            "visible_at_create": self.declared.visible == Visible::Create,
            "appends": self.declared.append == Append::Supported,
        })
    }

    /// Runs all cases, each in a new directory below `root`, the URI of a directory that exists. They share a process,
    /// and so TensorFlow and the plugin; one that crashes or hangs has failed, and the others go on in a new process.
    ///
    /// # Panics
    /// When the interpreter does not run, has no TensorFlow, or the plugin cannot be loaded, or not in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, root: &str) -> Vec<Answer> {
        let scratch = process::Scratch::new();
        let job = Job {
            interpreter: &self.interpreter,
            library: Some(&self.library),
            environment: &self.environment,
            settings: self.settings(root, scratch.path()),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        PROGRAM.run(&job, self.cases())
    }

    /// Runs cases in several processes, each with other variables of the environment before the plugin is loaded:
    /// forks of one that has imported TensorFlow. For tests of the cases themselves.
    ///
    /// # Panics
    /// As [`Python::run`].
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn run_each(
        &self,
        root: &str,
        jobs: &[(Environment, Vec<&'static PythonCase>)],
    ) -> Vec<Vec<Answer>> {
        let scratch = process::Scratch::new();
        let settings = jobs.iter().map(|(environment, cases)| {
            let mut settings = self.settings(root, scratch.path());
            let environment: std::collections::BTreeMap<_, _> =
                environment.iter().cloned().collect();
            settings["environment"] = json!(environment);
            settings["cases"] = cases.iter().map(|case| case.name).collect();
            settings
        });
        let job = Job {
            interpreter: &self.interpreter,
            library: None,
            environment: &self.environment,
            settings: settings.collect(),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        PROGRAM.run_each(&job, jobs.iter().map(|(_, cases)| cases.as_slice()))
    }
}
