//! The cases for ops that run in a real TensorFlow, from Python.

mod list;
mod sample;
mod suite;

pub use list::python_cases;
pub use sample::Sample;
pub use suite::Suite;

use crate::tensorflow::{Subject, TensorFlowCase};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the cases for ops in a real TensorFlow, [from Python](python_cases). `run` takes the library's name,
/// which is in reports.
pub type InTensorFlow = crate::tensorflow::InTensorFlow<Ops>;

/// The sample calls of ops.
#[derive(Debug, Default)]
pub struct Ops {
    calls: Vec<Sample>,
    package: Option<String>,
}

impl InTensorFlow {
    /// Adds sample calls.
    #[must_use]
    pub fn calls(mut self, calls: impl IntoIterator<Item = Sample>) -> Self {
        self.subject.calls.extend(calls);
        self
    }

    /// Sets the Python package of the library, which registers the gradients. Python has to find it.
    #[must_use]
    pub fn package(mut self, name: impl Into<String>) -> Self {
        self.subject.package = Some(name.into());
        self
    }
}

impl Subject for Ops {
    const PYTHON: &'static [&'static TensorFlowCase] = list::PYTHON;
    const C: &'static [&'static TensorFlowCase] = &[];
    const PROGRAM: &'static str = list::PROGRAM;

    fn work() -> bool {
        false
    }

    fn settings(&self, library: &Path, _on: &str) -> Value {
        let calls: Vec<_> = self.calls.iter().map(Sample::json).collect();
        json!({ "library": library, "calls": calls, "package": self.package })
    }
}
