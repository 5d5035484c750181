//! What TensorFlow asks of a device, case by case.
//!
//! One list of cases has two users: [`conformance!`](crate::device::conformance!) makes a test of each, [`run_case`] runs one.

mod case;
mod copies;
mod list;
mod loading;
mod memory;
mod order;
mod run;
mod threads;

pub use case::{Case, Group};
pub(super) use list::cases;
pub use run::run_case;
