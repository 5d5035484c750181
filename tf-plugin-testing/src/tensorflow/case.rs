//! A case that runs in a real TensorFlow, and its result.

use crate::outcome::Outcome;
use std::time::Duration;

/// A test case that runs in a real TensorFlow. Those for filesystems are in `python_cases` and
/// `c_cases` of each host.
#[derive(Debug)]
#[non_exhaustive]
pub struct TensorFlowCase {
    /// The name, which `without` of `conformance!` takes.
    pub name: &'static str,
    /// The title of its group.
    pub group: &'static str,
    /// What it checks, in Markdown.
    pub checks: &'static str,
    /// Why this matters to users of TensorFlow.
    pub why: &'static str,
    /// The in-process cases that check the same; if one of them is left out, so is this case.
    pub follows: &'static [&'static str],
}

/// The result of a case in a TensorFlow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseResult {
    /// The case.
    pub case: &'static TensorFlowCase,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}
