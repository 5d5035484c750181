//! The cases for devices that run in a real TensorFlow, from Python and in its C library.

mod in_c;
mod list;

pub use list::{c_cases, python_cases};

use crate::tensorflow::{Subject, TensorFlowCase, worker};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the cases for devices in a real TensorFlow: those [from Python](python_cases), or those
/// [in its C library](c_cases).
pub type InTensorFlow = crate::tensorflow::InTensorFlow<Devices>;

/// The type of what devices declare, which is nothing.
#[derive(Debug, Default)]
pub struct Devices;

impl Subject for Devices {
    const PYTHON: &'static [&'static TensorFlowCase] = list::PYTHON;
    const C: &'static [&'static TensorFlowCase] = list::C;
    const PROGRAM: &'static str = list::PROGRAM;

    fn work() -> bool {
        worker::work(list::RUN_IN_C)
    }

    fn settings(&self, library: &Path, on: &str) -> Value {
        json!({ "library": library, "type": on })
    }
}
