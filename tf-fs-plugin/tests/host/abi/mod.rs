//! Everything unsafe in these tests.

pub(crate) mod broken;
pub(crate) mod hand_made;
pub(crate) mod raw;
