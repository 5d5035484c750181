//! What is measured of device plugins.

pub mod rows;
pub mod same;
