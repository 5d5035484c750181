//! What TensorFlow requires of a filesystem, case by case.
//!
//! Each case has two users: [`conformance!`](crate::filesystem::conformance!) makes a test of it,
//! and [`Conformance::run`] runs it and returns the outcome.

mod attempt;
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
mod visibility;
mod writing;

pub use case::{Case, Group};
pub use checks::Conformance;
pub(super) use list::cases;
