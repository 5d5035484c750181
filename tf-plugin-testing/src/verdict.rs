//! How a case ends.

use crate::deviation::Deviation;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as it should be.
    Passed,
    /// The plugin does not have what the case asks about; the reason.
    Skipped(String),
    /// Something is not; at least one deviation.
    Failed(Vec<Deviation>),
}

impl Verdict {
    /// Of what deviated, and why the case is skipped if nothing did.
    pub(crate) fn of(deviations: Vec<Deviation>, skipped: Option<String>) -> Self {
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
    /// A step without which the rest makes no sense failed; its deviation is noted.
    Failed,
    /// The plugin does not have what the case asks about; the reason.
    Skip(String),
}

impl Stop {
    pub(crate) fn skip(reason: impl Into<String>) -> Self {
        Self::Skip(reason.into())
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// Skips the case unless this holds.
pub(crate) fn needs(holds: bool, otherwise: &str) -> Outcome {
    if holds { Ok(()) } else { Err(Stop::skip(otherwise)) }
}
