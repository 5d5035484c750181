//! How a case ends.

use crate::deviation::Deviation;
use tf_plugin_core::{Code, Error};

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
    /// Of what deviated, how the case ended, and what was found afterwards.
    pub(crate) fn of(
        mut deviations: Vec<Deviation>,
        outcome: Outcome,
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
    /// A step without which the rest makes no sense failed.
    Failed(Vec<Deviation>),
    /// The plugin does not have what the case asks about; the reason.
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

/// Of a step that has to succeed. `must`, or `ok` for devices, also says which: use it where there is one.
impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.code() == Code::Unimplemented {
            return Self::Skip(format!("not implemented: {}", error.message()));
        }
        Deviation::of_error("a step that has to succeed", "success", &error).into()
    }
}

/// How a case, or a part of one, ends.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// Skips the case unless this holds.
pub(crate) fn needs(holds: bool, otherwise: &str) -> Outcome {
    if holds { Ok(()) } else { Err(Stop::skip(otherwise)) }
}
