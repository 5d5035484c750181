//! The measured rows of device plugins.

pub mod equivalence;
pub mod rows;
