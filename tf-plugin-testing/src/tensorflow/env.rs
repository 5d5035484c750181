//! The requests of `cargo tf-plugin test` to a test, in environment variables.

use super::case::CaseResult;
use super::in_tensorflow::{InTensorFlow, Subject};
use super::program::Program;
use crate::deviation::report;
use crate::options::Exclusions;
use crate::outcome::Outcome;
use serde_json::json;
use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

/// A request of `cargo tf-plugin test`.
#[derive(Debug)]
pub(crate) struct TestRequest<'m> {
    program: Program,
    library: PathBuf,
    report: Option<PathBuf>,
    /// The module of the test, as `module_path!` gives it.
    module: &'m str,
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl<'m> TestRequest<'m> {
    /// Reads the request for the C cases or the Python cases. Returns `None`, and prints why, if
    /// there is no request. The C cases run in this executable, as the test `conformance_in_c` of
    /// the module; in that process this runs them and returns `None`.
    #[must_use]
    pub(crate) fn new<T: Subject>(module: &'m str, in_c: bool) -> Option<Self> {
        let program = if !in_c {
            path("TF_PLUGIN_TEST_PYTHON").map(Program::Python)
        } else if T::work() {
            return None;
        } else {
            // A test's name does not include that of the crate.
            let modules = module.split_once("::").map(|(_, modules)| format!("{modules}::"));
            let name = format!("{}conformance_in_c", modules.unwrap_or_default());
            path("TF_PLUGIN_TEST_C_LIBRARY").map(|directory| Program::Test { name, directory })
        };
        let request = program.zip(path("TF_PLUGIN_TEST_LIBRARY")).map(|(program, library)| Self {
            program,
            library,
            report: path("TF_PLUGIN_TEST_REPORT"),
            module,
        });
        if request.is_none() {
            println!("skipped: this runs in real TensorFlow, with `cargo tf-plugin test`");
        }
        request
    }

    /// Prepares a run of the cases, without those that are left out.
    pub(crate) fn cases<T: Subject>(&self, subject: T, without: &Exclusions) -> InTensorFlow<T> {
        let cases = InTensorFlow::by(self.program.clone(), self.library.clone(), subject);
        without.0.iter().fold(cases, |cases, (name, reason)| cases.without(*name, reason))
    }

    /// Prints the results, and fails the test if a case failed.
    #[track_caller]
    pub(crate) fn judge(&self, results: &[CaseResult], on: &str, whose: &str) {
        self.report(results);
        let mut failures = String::new();
        for result in results {
            let (name, checks, why) = (result.case.name, result.case.checks, result.case.why);
            match &result.outcome {
                Outcome::Passed => println!("{name}: ok"),
                Outcome::Skipped(reason) => println!("{name}: skipped: {reason}"),
                Outcome::Failed(deviations) => {
                    failures.push_str(&report(name, checks, why, on, whose, deviations));
                    failures.push('\n');
                }
            }
        }
        assert!(failures.is_empty(), "{failures}");
    }

    /// Appends the results to the report file, one line each, for `cargo tf-plugin test`.
    #[track_caller]
    fn report(&self, results: &[CaseResult]) {
        let Some(path) = &self.report else { return };
        let lines = results.iter().map(|result| {
            let (outcome, reason) = match &result.outcome {
                Outcome::Passed => ("passed", None),
                Outcome::Skipped(reason) => ("skipped", Some(reason)),
                Outcome::Failed(_) => ("failed", None),
            };
            let (suite, name) = (self.module, result.case.name);
            let line =
                json!({ "suite": suite, "case": name, "outcome": outcome, "reason": reason });
            format!("{line}\n")
        });
        let lines: String = lines.collect();
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(lines.as_bytes()))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}
