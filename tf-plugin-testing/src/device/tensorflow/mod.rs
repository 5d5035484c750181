//! The cases for devices that run in a real TensorFlow, from Python and in its C library.
//!
//! [`conformance!`](crate::device::conformance!) makes a test of either, which `cargo tf-plugin test` runs once for each
//! TensorFlow that it is told of. Alone those tests say so and do nothing.

mod in_c;
mod list;

pub use list::{c_cases, python_cases};

use crate::tensorflow::{Answer, Job, TensorFlowCase, Way, with_reasons};
use crate::tensorflow::{RUNNER, start_limit, work::work};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// What the cases in Python are.
const PYTHON: &[&str] = &[RUNNER, include_str!("device.py")];

/// Runs the cases for devices in a real TensorFlow: those [from Python](python_cases), or those
/// [in its C library](c_cases).
///
/// ```no_run
/// use tf_plugin_testing::device::{InTensorFlow, Verdict};
/// let cases = InTensorFlow::from_python("venv/bin/python", "target/release/librefdevice.so");
/// for answer in cases.run("RUST_REF") {
///     assert!(!matches!(answer.verdict, Verdict::Failed(_)), "{answer:?}");
/// }
/// ```
#[derive(Debug)]
pub struct InTensorFlow {
    way: Way,
    library: PathBuf,
    environment: Vec<(String, String)>,
    without: Vec<(String, String)>,
    limit: Duration,
    start_limit: Option<Duration>,
}

in_tensorflow_options!();

impl InTensorFlow {
    /// From Python: with an interpreter that has TensorFlow, and a plugin, which is loaded when it imports TensorFlow.
    #[must_use]
    pub fn from_python(interpreter: impl Into<PathBuf>, library: impl Into<PathBuf>) -> Self {
        Self::by(Way::Python(interpreter.into()), library.into())
    }

    /// In TensorFlow's C library, without Python: with the directory that has `libtensorflow_cc.so.2` and
    /// `libtensorflow_framework.so.2`, and a plugin, which `TF_LoadPluggableDeviceLibrary` loads.
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
        let way = Way::C { directory: directory.into(), worker: worker.into() };
        Self::by(way, library.into())
    }

    /// Runs cases in C, if this process is one that [`in_c`](Self::in_c) has started, and says whether it is.
    ///
    /// # Panics
    /// If such a process is not told what to run.
    pub fn work() -> bool {
        work(list::RUN_IN_C)
    }

    pub(in crate::device) fn by(way: Way, library: PathBuf) -> Self {
        Self {
            way,
            library,
            environment: Vec::new(),
            without: Vec::new(),
            limit: Duration::from_secs(120),
            start_limit: None,
        }
    }

    /// Runs all cases on the first device of this type. They share a process, and so TensorFlow and the plugin; one
    /// that crashes or hangs has failed, and the others go on in a new process.
    ///
    /// # Panics
    /// When the process does not run, has no TensorFlow, or the plugin cannot be loaded, or not in time.
    #[must_use]
    #[track_caller]
    pub fn run(&self, device_type: &str) -> Vec<Answer> {
        let job = Job {
            program: self.way.program(PYTHON, Some(&self.library)),
            environment: &self.environment,
            settings: json!({ "library": self.library, "type": device_type }),
            limit: self.limit,
            start_limit: self.start_limit.unwrap_or_else(|| start_limit(self.limit)),
        };
        job.run(with_reasons(self.cases(), &self.without))
    }
}
