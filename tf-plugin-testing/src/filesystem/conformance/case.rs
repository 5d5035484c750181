//! A case, and what it is about.

case_type! {
    /// One question that a filesystem is asked. All are in [`cases`](super::cases).
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "their titles say it")]
pub enum Group {
    Opening,
    OpenFiles,
    Directories,
    Deleting,
    Transfers,
    Queries,
    Listing,
    Canonical,
    Extras,
    Content,
    Replaced,
    Names,
    Trees,
    Consumers,
    Threads,
    Random,
}

impl Group {
    /// Whether `filesystem_interface.h` says what the cases ask; the others request what TensorFlow
    /// needs beyond.
    #[must_use]
    pub fn is_of_the_header(self) -> bool {
        (self as u8) <= (Self::Extras as u8)
    }
}
