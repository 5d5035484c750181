//! The cases that run in a real TensorFlow, from Python and in its C library.
//!
//! [`conformance!`](crate::filesystem::conformance!) makes a test of either, which `cargo tf-plugin test` runs once for each
//! TensorFlow that it is told of: it names the interpreter, or the directory of the C library, and the plugin's library
//! in the environment. Alone those tests say so and do nothing. [`InTensorFlow`] is for those who run the cases by
//! themselves.

mod in_c;
mod list;

pub use list::{c_cases, python_cases};

use super::conformance::{Append, Declared, Directories, Files, Visible};
use crate::tensorflow::{
    Answer, Job, RUNNER, Scratch, TensorFlowCase, Way, start_limit, with_reasons, work,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the cases for filesystems in a real TensorFlow: those [from Python](python_cases), or those
/// [in its C library](c_cases).
///
/// ```no_run
/// use tf_plugin_testing::filesystem::{InTensorFlow, Verdict};
/// let cases = InTensorFlow::from_python("venv/bin/python", "target/release/libmemfs.so");
/// for answer in cases.run("mem://box/") {
///     assert!(!matches!(answer.verdict, Verdict::Failed(_)), "{answer:?}");
/// }
/// ```
#[derive(Debug)]
pub struct InTensorFlow {
    way: Way,
    library: PathBuf,
    declared: Declared,
    environment: Environment,
    without: Vec<(String, String)>,
    limit: Duration,
    start_limit: Option<Duration>,
}

type Environment = Vec<(String, String)>;

/// What the cases in Python are.
const PYTHON: &[&str] = &[RUNNER, include_str!("filesystem.py")];

in_tensorflow_options!();

impl InTensorFlow {
    /// From Python: with an interpreter that has TensorFlow, and a plugin, which is loaded when it imports TensorFlow.
    #[must_use]
    pub fn from_python(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self::by(Way::Python(interpreter.into()), library.into())
    }

    /// In TensorFlow's C library, without Python: with the directory that has `libtensorflow_cc.so.2` and
    /// `libtensorflow_framework.so.2`, and a plugin, which `TF_RegisterFilesystemPlugin` loads.
    ///
    /// The process is this executable once more, of which the test `worker` calls [`work`](Self::work):
    ///
    /// ```no_run
    /// use tf_plugin_testing::filesystem::InTensorFlow;
    /// # const LIBRARIES: &str = "";
    ///
    /// #[test]
    /// fn worker() {
    ///     InTensorFlow::work();
    /// }
    ///
    /// #[test]
    /// fn files_in_c() {
    ///     let cases = InTensorFlow::in_c(LIBRARIES, "target/release/libmemfs.so", "worker");
    ///     let answers = cases.run("mem://box/");
    /// }
    /// ```
    #[must_use]
    pub fn in_c(
        directory: impl Into<PathBuf>,
        library: impl Into<PathBuf>,
        worker: impl Into<String>,
    ) -> Self {
        let way = Way::C { directory: directory.into(), worker: worker.into() };
        Self::by(way, library.into())
    }

    pub(super) fn by(way: Way, library: PathBuf) -> Self {
        Self {
            way,
            library,
            declared: Declared::default(),
            environment: Vec::new(),
            without: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        }
    }

    /// Runs cases in C, if this process is one that [`in_c`](Self::in_c) has started, and says whether it is.
    ///
    /// # Panics
    /// If such a process is not told what to run.
    pub fn work() -> bool {
        work::work(list::RUN_IN_C)
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

    /// Where the files come from that the cases read: with [`Files::Provided`] all that write are left out.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.declared.files = files;
        self
    }

    pub(super) fn declared(self, declared: Declared) -> Self {
        Self { declared, ..self }
    }

    fn with_reasons(&self) -> Vec<(&'static TensorFlowCase, Option<String>)> {
        let mut cases = with_reasons(self.cases(), &self.without);
        if self.declared.files == Files::Provided {
            for (case, reason) in &mut cases {
                if case.name != c_cases::c_provided_files.name {
                    reason.get_or_insert_with(|| "it writes the files that it reads".into());
                }
            }
        }
        cases
    }

    fn settings(&self, root: &str, local: &Path) -> serde_json::Value {
        json!({
            "library": self.library,
            "scheme": root.split_once("://").map_or("", |(scheme, _)| scheme),
            "root": root,
            "local": local,
            "malformed": self.declared.malformed,
            "real": self.declared.directories == Directories::Real,
            "visible_at_create": self.declared.visible.at_create(),
            "visible_at_flush": self.declared.visible != Visible::Close,
            "appends": self.declared.append == Append::Supported,
            "provided": self.declared.files == Files::Provided,
        })
    }

    /// Runs all cases, each in a new directory below `root`, the URI of a directory that exists. They share a process,
    /// and so TensorFlow and the plugin; one that crashes or hangs has failed, and the others go on in a new process.
    ///
    /// # Panics
    /// When the process does not run, has no TensorFlow, or the plugin cannot be loaded, or not in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, root: &str) -> Vec<Answer> {
        let scratch = Scratch::new();
        let job = Job {
            program: self.way.program(PYTHON, Some(&self.library)),
            environment: &self.environment,
            settings: self.settings(root, scratch.path()),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        job.run(self.with_reasons())
    }

    /// Runs cases in several processes, each with other variables of the environment before the plugin is loaded:
    /// forks of one that has loaded TensorFlow. For tests of the cases themselves.
    ///
    /// # Panics
    /// As [`InTensorFlow::run`].
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn run_each(
        &self,
        root: &str,
        jobs: &[(Environment, Vec<&'static TensorFlowCase>)],
    ) -> Vec<Vec<Answer>> {
        let scratch = Scratch::new();
        let settings = jobs.iter().map(|(environment, cases)| {
            let mut settings = self.settings(root, scratch.path());
            let environment: std::collections::BTreeMap<_, _> =
                environment.iter().cloned().collect();
            settings["environment"] = json!(environment);
            settings["cases"] = cases.iter().map(|case| case.name).collect();
            settings
        });
        let job = Job {
            program: self.way.program(PYTHON, None),
            environment: &self.environment,
            settings: settings.collect(),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        job.run_each(jobs.iter().map(|(_, cases)| cases.as_slice()))
    }
}
