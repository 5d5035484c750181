//! The cases that run in a real TensorFlow, and how they end.

use crate::verdict::Verdict;
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
