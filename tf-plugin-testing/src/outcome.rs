//! How a case ends.

use crate::deviation::Deviation;
use tf_plugin_core::{Code, Error};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as expected.
    Passed,
    /// The plugin does not implement what the case checks; the reason.
    Skipped(String),
    /// At least one expectation does not hold.
    Failed(Vec<Deviation>),
}

impl Outcome {
    /// Combines the deviations that were noted, the outcome of the case, and what was found afterwards.
    pub(crate) fn of(
        mut deviations: Vec<Deviation>,
        outcome: Step,
        afterwards: impl IntoIterator<Item = Deviation>,
    ) -> Self {
        let skipped = match outcome {
            Ok(()) => None,
            Err(Stop::Skip(reason)) => Some(reason),
            Err(Stop::Failed(found)) => {
                deviations.extend(found);
                None
            }
        };
        deviations.extend(afterwards);
        match skipped {
            _ if !deviations.is_empty() => Self::Failed(deviations),
            Some(reason) => Self::Skipped(reason),
            None => Self::Passed,
        }
    }
}

/// Why a case ends before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A step failed that the rest of the case needs.
    Failed(Vec<Deviation>),
    /// The plugin does not implement what the case checks; the reason.
    Skip(String),
}

impl Stop {
    pub(crate) fn skip(reason: impl Into<String>) -> Self {
        Self::Skip(reason.into())
    }
}

impl From<Deviation> for Stop {
    fn from(deviation: Deviation) -> Self {
        Self::Failed(vec![deviation])
    }
}

/// For steps that have to succeed. `must`, or `ok` for devices, also names the step: prefer it where there is one.
impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.code() == Code::Unimplemented {
            return Self::Skip(format!("not implemented: {}", error.message()));
        }
        Deviation::of_error("a step that has to succeed", "success", &error).into()
    }
}

/// How a case, or a part of one, ends.
pub(crate) type Step<T = ()> = Result<T, Stop>;

/// Skips the case if `holds` is false.
pub(crate) fn needs(holds: bool, otherwise: &str) -> Step {
    if holds { Ok(()) } else { Err(Stop::skip(otherwise)) }
}
