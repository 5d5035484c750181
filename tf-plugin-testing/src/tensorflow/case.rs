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

/// Each of these cases, with the reason if it is left out: by its own name, or by that of a case that checks the same.
#[must_use]
pub(super) fn with_reasons(
    cases: &[&'static TensorFlowCase],
    without: &[(String, String)],
) -> Vec<(&'static TensorFlowCase, Option<String>)> {
    let reason = |case: &TensorFlowCase| {
        let of = |name: &String| name == case.name || case.follows.contains(&name.as_str());
        without.iter().find(|(name, _)| of(name)).map(|(_, reason)| reason.clone())
    };
    cases.iter().map(|case| (*case, reason(case))).collect()
}
