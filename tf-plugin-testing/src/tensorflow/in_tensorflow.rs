//! Runs the cases of filesystems or of devices in a real TensorFlow.

use super::case::{CaseResult, TensorFlowCase};
use super::process::Process;
use super::program::Program;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The subject of the cases: filesystems or devices, with their declared options.
pub trait Subject: Default {
    /// The cases from Python.
    const PYTHON: &'static [&'static TensorFlowCase];
    /// The cases in TensorFlow's C library.
    const C: &'static [&'static TensorFlowCase];
    /// The cases from Python as a program.
    const PROGRAM: &'static str;

    /// Runs the C cases if this process was started for that, and returns whether it was.
    fn work() -> bool;

    /// Returns what the cases need to know of what is subject.
    fn settings(&self, library: &Path, on: &str) -> Value;

    /// Returns why a case does not apply, if it does not.
    fn left_out(&self, _case: &TensorFlowCase) -> Option<&'static str> {
        None
    }
}

type Environment = Vec<(String, String)>;

/// Runs cases in a real TensorFlow: those from Python, or those in its C library.
///
/// ```no_run
/// use tf_plugin_testing::filesystem::{InTensorFlow, Outcome};
/// let cases = InTensorFlow::from_python("venv/bin/python", "target/release/libmemfs.so");
/// for result in cases.run("mem://box/") {
///     assert!(!matches!(result.outcome, Outcome::Failed(_)), "{result:?}");
/// }
/// ```
#[derive(Debug)]
pub struct InTensorFlow<T: Subject> {
    process: Process,
    pub(crate) subject: T,
    without: Vec<(String, String)>,
}

impl<T: Subject> InTensorFlow<T> {
    /// Creates a run from Python. `interpreter` loads the plugin when it imports TensorFlow.
    #[must_use]
    pub fn from_python(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self::by(Program::Python(interpreter.into()), library.into(), T::default())
    }

    /// Creates a run in TensorFlow's C library, without Python. `directory` has
    /// `libtensorflow_cc.so.2` and `libtensorflow_framework.so.2`. `TF_RegisterFilesystemPlugin` or
    /// `TF_LoadPluggableDeviceLibrary` loads the plugin.
    ///
    /// The process is this executable again, in which the test `worker` calls [`work`](Self::work):
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
    ///     let results = cases.run("RUST_REF");
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

    pub(super) fn by(program: Program, library: PathBuf, subject: T) -> Self {
        let process = Process {
            program,
            library,
            environment: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        };
        Self { process, subject, without: Vec::new() }
    }

    /// Runs the C cases if [`in_c`](Self::in_c) started this process, and returns whether it did.
    ///
    /// # Panics
    /// Panics if such a process has no valid request.
    pub fn work() -> bool {
        T::work()
    }

    /// Sets an environment variable of TensorFlow's process, such as a setting of the plugin.
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

    /// Sets the time limit of a case, which is 120 seconds by default.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.process.limit = limit;
        self
    }

    /// Sets how long TensorFlow may take to load the plugin and start the first case, and to end
    /// after the last one. The default is 120 seconds, or the limit of a case if that is more.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.process.start_limit = Some(limit);
        self
    }

    /// Returns all Python cases, in their order.
    #[must_use]
    pub fn all_from_python() -> &'static [&'static TensorFlowCase] {
        T::PYTHON
    }

    /// Returns all C cases, in their order.
    #[must_use]
    pub fn all_in_c() -> &'static [&'static TensorFlowCase] {
        T::C
    }

    /// Returns the cases that this value runs: those in Python or those in C.
    #[must_use]
    pub fn cases(&self) -> &'static [&'static TensorFlowCase] {
        match self.process.program {
            Program::Python(_) => T::PYTHON,
            Program::Test { .. } => T::C,
        }
    }

    /// Runs all cases on `on`: the URI of a directory that exists, in which each case creates its own, or a device
    /// type, whose first device is subject. The cases share a process, and so TensorFlow and the plugin. A case that
    /// crashes or hangs has failed; the others continue in a new process.
    ///
    /// # Panics
    /// Panics if the process does not run, has no TensorFlow, or does not load the plugin in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, on: &str) -> Vec<CaseResult> {
        let settings = self.subject.settings(&self.process.library, on);
        let reason = |case: &TensorFlowCase| {
            let of = |name: &String| name == case.name || case.follows.contains(&name.as_str());
            let named = self.without.iter().find(|(name, _)| of(name));
            let named = named.map(|(_, reason)| reason.clone());
            named.or_else(|| self.subject.left_out(case).map(str::to_owned))
        };
        // A case is left out by its own name, or by that of a case that checks the same.
        let cases: Vec<_> = self.cases().iter().map(|case| (*case, reason(case))).collect();
        self.process.run(T::PROGRAM, &settings, &cases)
    }

    /// Runs cases in several processes, each with its own environment variables when the plugin is loaded. The
    /// processes are forks of one that has loaded TensorFlow. For tests of the cases themselves.
    ///
    /// # Panics
    /// Panics as [`InTensorFlow::run`] does, and for C cases, which have one process.
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn run_each(
        &self,
        on: &str,
        jobs: &[(Environment, Vec<&'static TensorFlowCase>)],
    ) -> Vec<Vec<CaseResult>> {
        assert!(
            matches!(self.process.program, Program::Python(_)),
            "only Python forks for each job; call `run` for the cases in C"
        );
        let settings = jobs.iter().map(|(environment, cases)| {
            let mut settings = self.subject.settings(&self.process.library, on);
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
