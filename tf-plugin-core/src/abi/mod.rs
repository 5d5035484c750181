//! The C boundary: everything unsafe in this crate, and nothing else.

pub(crate) mod bytes;
pub(crate) mod clock;
pub(crate) mod failure_log;
pub mod fork;
pub(crate) mod guard;
pub(crate) mod panic;
pub(crate) mod status;
