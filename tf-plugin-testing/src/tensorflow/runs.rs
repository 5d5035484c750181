//! The cases of filesystems or of devices that run in a real TensorFlow, and how they end.

use super::process::Process;
use super::program::Program;
use crate::verdict::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A question that a filesystem or a device is asked through a real TensorFlow. Those about filesystems are in
/// `python_cases` and `c_cases` of each host.
#[derive(Debug)]
#[non_exhaustive]
pub struct TensorFlowCase {
    /// The name, by which `without` of `conformance!` leaves it out.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
    /// What it checks, in Markdown.
    pub asks: &'static str,
    /// Why users of TensorFlow care.
    pub why: &'static str,
    /// The in-process cases that check the same: without one of them there is nothing to check here.
    pub follows: &'static [&'static str],
}

/// What a case came to in a TensorFlow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The case.
    pub case: &'static TensorFlowCase,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// What is tested: filesystems or devices, with what is declared of them.
pub trait Tested: Default {
    /// The cases from Python.
    const PYTHON: &'static [&'static TensorFlowCase];
    /// The cases in TensorFlow's C library.
    const C: &'static [&'static TensorFlowCase];
    /// The cases from Python as a program.
    const PROGRAM: &'static str;

    /// Runs cases in C, if this process is one for that, and says whether it is.
    fn work() -> bool;

    /// What the cases are told of what is tested.
    fn settings(&self, library: &Path, on: &str) -> Value;

    /// Why a case makes no sense.
    fn left_out(&self, _case: &TensorFlowCase) -> Option<&'static str> {
        None
    }
}

type Environment = Vec<(String, String)>;

/// Runs cases in a real TensorFlow: those from Python, or those in its C library.
///
/// ```no_run
/// use tf_plugin_testing::filesystem::{InTensorFlow, Verdict};
/// let cases = InTensorFlow::from_python("venv/bin/python", "target/release/libmemfs.so");
/// for answer in cases.run("mem://box/") {
///     assert!(!matches!(answer.verdict, Verdict::Failed(_)), "{answer:?}");
/// }
/// ```
#[derive(Debug)]
pub struct InTensorFlow<T: Tested> {
    process: Process,
    pub(crate) tested: T,
    without: Vec<(String, String)>,
}

impl<T: Tested> InTensorFlow<T> {
    /// From Python: with an interpreter that has TensorFlow, and a plugin, which is loaded when it imports TensorFlow.
    #[must_use]
    pub fn from_python(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self::by(Program::Python(interpreter.into()), library.into(), T::default())
    }

    /// In TensorFlow's C library, without Python: with the directory that has `libtensorflow_cc.so.2` and
    /// `libtensorflow_framework.so.2`, and a plugin, which `TF_RegisterFilesystemPlugin` or
    /// `TF_LoadPluggableDeviceLibrary` loads.
    ///
    /// The process is this executable once more, of which the test `worker` calls [`work`](Self::work):
    ///
    /// ```no_run
    /// use tf_plugin_testing::device::InTensorFlow;
    /// # const LIBRARIES: &str = "";
    ///
    /// #[test]
    /// fn worker() {
    ///     InTensorFlow::work();
    /// }
    ///
    /// #[test]
    /// fn device_in_c() {
    ///     let cases = InTensorFlow::in_c(LIBRARIES, "target/release/librefdevice.so", "worker");
    ///     let answers = cases.run("RUST_REF");
    /// }
    /// ```
    #[must_use]
    pub fn in_c(
        directory: impl Into<PathBuf>,
        library: impl Into<PathBuf>,
        worker: impl Into<String>,
    ) -> Self {
        let program = Program::Test { name: worker.into(), directory: directory.into() };
        Self::by(program, library.into(), T::default())
    }

    pub(super) fn by(program: Program, library: PathBuf, tested: T) -> Self {
        let process = Process {
            program,
            library,
            environment: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        };
        Self { process, tested, without: Vec::new() }
    }

    /// Runs cases in C, if this process is one that [`in_c`](Self::in_c) has started, and says whether it is.
    ///
    /// # Panics
    /// If such a process is not told what to run.
    pub fn work() -> bool {
        T::work()
    }

    /// Sets an environment variable of TensorFlow's process: settings of the plugin.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.process.environment.push((name.into(), value.into()));
        self
    }

    /// Leaves out the case of this name, and those that check the same as the in-process case of this name.
    #[must_use]
    pub fn without(mut self, case: impl Into<String>, reason: impl Into<String>) -> Self {
        self.without.push((case.into(), reason.into()));
        self
    }

    /// How long a case may take; 120 seconds if nothing is said.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.process.limit = limit;
        self
    }

    /// How long TensorFlow may take to load the plugin and come to the first case, and to end after the last one; 120
    /// seconds if nothing is said, or as long as a case may take if that is more.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.process.start_limit = Some(limit);
        self
    }

    /// All cases from Python, in their order.
    #[must_use]
    pub fn all_from_python() -> &'static [&'static TensorFlowCase] {
        T::PYTHON
    }

    /// All cases in C, in their order.
    #[must_use]
    pub fn all_in_c() -> &'static [&'static TensorFlowCase] {
        T::C
    }

    /// Those of the two that this value runs.
    #[must_use]
    pub fn cases(&self) -> &'static [&'static TensorFlowCase] {
        match self.process.program {
            Program::Python(_) => T::PYTHON,
            Program::Test { .. } => T::C,
        }
    }

    /// Runs all cases on what has this name: the URI of a directory that exists, in which each case makes one of its
    /// own, or the type of devices, of which the first is tested. They share a process, and so TensorFlow and the
    /// plugin; one that crashes or hangs has failed, and the others go on in a new process.
    ///
    /// # Panics
    /// When the process does not run, has no TensorFlow, or the plugin cannot be loaded, or not in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, on: &str) -> Vec<Answer> {
        let settings = self.tested.settings(&self.process.library, on);
        let reason = |case: &TensorFlowCase| {
            let of = |name: &String| name == case.name || case.follows.contains(&name.as_str());
            let named = self.without.iter().find(|(name, _)| of(name));
            let named = named.map(|(_, reason)| reason.clone());
            named.or_else(|| self.tested.left_out(case).map(str::to_owned))
        };
        // One is left out by its own name, or by that of a case that checks the same.
        let cases: Vec<_> = self.cases().iter().map(|case| (*case, reason(case))).collect();
        self.process.run(T::PROGRAM, &settings, &cases)
    }

    /// Runs cases in several processes, each with other variables of the environment before the plugin is loaded:
    /// forks of one that has loaded TensorFlow. For tests of the cases themselves.
    ///
    /// # Panics
    /// As [`InTensorFlow::run`], and for cases in C, which have one process.
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn run_each(
        &self,
        on: &str,
        jobs: &[(Environment, Vec<&'static TensorFlowCase>)],
    ) -> Vec<Vec<Answer>> {
        assert!(
            matches!(self.process.program, Program::Python(_)),
            "only Python forks for each job; call `run` for the cases in C"
        );
        let settings = jobs.iter().map(|(environment, cases)| {
            let mut settings = self.tested.settings(&self.process.library, on);
            settings["environment"] =
                json!(environment.iter().cloned().collect::<BTreeMap<_, _>>());
            settings["cases"] = cases.iter().map(|case| case.name).collect();
            settings
        });
        let settings: Vec<_> = settings.collect();
        let cases = jobs.iter().map(|(_, cases)| cases.as_slice());
        self.process.run_each(T::PROGRAM, &settings, cases)
    }
}
