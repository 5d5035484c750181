//! What TensorFlow requires of a device, case by case.
//!
//! Each case has two users: [`conformance!`](crate::device::conformance!) makes a test of it, [`run_case`] runs it.

mod case;
mod copies;
mod failed_work;
mod list;
mod loading;
mod memory;
mod order;
mod run;
mod threads;

pub use case::{Case, Group};
pub use failed_work::failed_work;
pub(super) use list::cases;
pub use run::run_case;
pub(super) use run::run_next_case;
