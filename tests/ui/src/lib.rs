//! Shared code of the test cases.

pub mod device;
