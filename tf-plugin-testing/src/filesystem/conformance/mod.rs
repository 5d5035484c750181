//! What TensorFlow asks of a filesystem, case by case.
//!
//! One list of cases has two users: [`conformance!`](crate::filesystem::conformance!) makes a test of each, and
//! [`Conformance::run`] runs one and says how it ended.

mod case;
mod checks;
pub(super) mod conditions;
mod consumers;
mod directories;
mod extras;
mod files;
mod list;
mod names;
mod queries;
mod random;
mod reading;
mod replaced;
mod run;
pub(super) mod samples;
mod steps;
mod threads;
mod times;
mod tree;
mod visible;
mod writing;

pub use case::{Case, Group};
pub use checks::Conformance;
pub(super) use list::cases;
