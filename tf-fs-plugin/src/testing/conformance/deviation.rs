//! What a filesystem does otherwise than it should.

use std::fmt::{self, Display};

/// One answer or effect that is not the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviation {
    /// What was done, or what does not hold.
    pub what: String,
    /// What should have come; `None` if `what` says it.
    pub wanted: Option<String>,
    /// What came.
    pub got: Option<String>,
    /// The plugin's message, or where values differ.
    pub detail: Option<String>,
}

impl Deviation {
    pub(super) fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), wanted: None, got: None, detail: None }
    }

    pub(super) fn wanted(mut self, wanted: String) -> Self {
        self.wanted = Some(wanted);
        self
    }

    pub(super) fn got(mut self, got: String) -> Self {
        self.got = Some(got);
        self
    }

    pub(super) fn because(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }
}

impl Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let (Some(wanted), Some(got)) = (&self.wanted, &self.got) {
            write!(f, ": {wanted}, not {got}")?;
        }
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
