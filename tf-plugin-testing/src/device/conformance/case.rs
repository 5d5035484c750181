//! A case, and what it is about.

case_type! {
    /// One question that a device is asked. All are in [`cases`](super::cases).
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
