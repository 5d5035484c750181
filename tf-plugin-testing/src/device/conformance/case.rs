//! A case, and what it is about.

use super::run::{Outcome, Run};
use std::fmt;

/// One question that a device is asked. All are in [`cases`](super::cases).
pub struct Case {
    pub(super) name: &'static str,
    pub(super) asks: &'static str,
    pub(super) why: &'static str,
    pub(super) group: Group,
    pub(super) run: fn(&mut Run<'_>) -> Outcome,
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "their titles say it")]
pub enum Group {
    Loading,
    Description,
    Memory,
    Copies,
    Fills,
    Order,
    Events,
    Callbacks,
    Timers,
    Threads,
    Random,
}

impl Case {
    /// All cases, in their order.
    #[must_use]
    pub fn all() -> &'static [&'static Case] {
        super::list::CASES
    }

    /// The name, as of the test.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it checks, in Markdown.
    #[must_use]
    pub fn asks(&self) -> &'static str {
        self.asks
    }

    /// Why TensorFlow cares.
    #[must_use]
    pub fn why(&self) -> &'static str {
        self.why
    }

    /// What it is about.
    #[must_use]
    pub fn group(&self) -> Group {
        self.group
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}
