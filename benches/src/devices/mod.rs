//! What is measured of device plugins.

pub mod equivalence;
pub mod rows;
