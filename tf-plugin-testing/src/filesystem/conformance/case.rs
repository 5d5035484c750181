//! A case, and what it is about.

case_type! {
    /// One test case for a filesystem. All are in [`cases`](crate::filesystem::cases).
}

groups! {
    Opening "Opening files",
    OpenFiles "Files that are open, and files that were dropped",
    Directories "Making directories",
    Deleting "Deleting",
    Transfers "Renaming and copying",
    Queries "Questions about paths",
    Listing "Listing and patterns of the header",
    Canonical "Names in canonical form",
    Extras "Transactions and configuration",
    Content "What is written is what is read",
    Replaced "Files that are replaced or deleted while they are open",
    Names "Names that are easily mistaken",
    Trees "Directories, listings and deleting at large",
    Consumers "What TensorFlow's own code does",
    Threads "Several threads at a time",
    Random "Random operations",
}

impl Group {
    /// Returns whether `filesystem_interface.h` says what the cases check. The others check what
    /// TensorFlow needs beyond the header.
    #[must_use]
    pub fn is_of_the_header(self) -> bool {
        (self as u8) <= (Self::Extras as u8)
    }
}
