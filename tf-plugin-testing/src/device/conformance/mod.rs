//! What TensorFlow asks of a device, case by case.
//!
//! One list of cases has two users: [`conformance!`](crate::device::conformance!) makes a test of each, [`run_case`] runs one.

mod case;
mod copies;
mod limits;
mod list;
mod loading;
mod memory;
mod order;
mod run;
mod threads;

pub use case::{Case, Group};
pub use limits::run_case;
pub(super) use list::cases;
