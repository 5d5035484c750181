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
