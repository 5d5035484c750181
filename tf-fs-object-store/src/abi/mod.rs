//! Everything that is unsafe in this crate.

#[cfg(feature = "http")]
pub(crate) mod socket;
