//! What the cases of the tests have in common.

pub mod device;
