//! The cases that run in a real TensorFlow, from Python and in its C library.
//!
//! [`conformance!`](crate::filesystem::conformance!) defines a test for each of the two.
//! [`InTensorFlow`] runs the cases without these tests.

mod in_c;
mod list;

pub use list::{c_cases, python_cases};

use super::semantics::{Append, Directories, Files, Semantics, Visibility, declarations};
use crate::tensorflow::{Subject, TensorFlowCase, worker};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the cases for filesystems in a real TensorFlow: those [from Python](python_cases), or those
/// [in its C library](c_cases).
pub type InTensorFlow = crate::tensorflow::InTensorFlow<Semantics>;

declarations! { InTensorFlow, subject, Into<String> }

impl Subject for Semantics {
    const PYTHON: &'static [&'static TensorFlowCase] = list::PYTHON;
    const C: &'static [&'static TensorFlowCase] = list::C;
    const PROGRAM: &'static str = list::PROGRAM;

    fn work() -> bool {
        worker::work(list::RUN_IN_C)
    }

    fn settings(&self, library: &Path, on: &str) -> Value {
        json!({
            "library": library,
            "scheme": on.split_once("://").map_or("", |(scheme, _)| scheme),
            "root": on,
            "malformed": self.malformed,
            "real": self.directories == Directories::Real,
            "visible_at_create": self.visible.at_create(),
            "visible_at_flush": self.visible != Visibility::Close,
            "appends": self.append == Append::Supported,
            "provided": self.files == Files::Provided,
        })
    }

    fn left_out(&self, case: &TensorFlowCase) -> Option<&'static str> {
        match (self.files == Files::Provided, case.name == c_cases::c_provided_files.name) {
            (true, false) => Some("it writes the files that it reads"),
            (false, true) => Some("the files are not declared to be provided"),
            _ => None,
        }
    }
}
