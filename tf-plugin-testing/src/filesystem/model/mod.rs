//! Random sequences of operations, run through the C tables of a plugin and on a model.
//!
//! [`sequence`] makes them, the other types say what each operation must return, and [`run`] compares a filesystem with
//! that. The codes are those of `filesystem_interface.h`; where several conditions apply, any of their codes is right.
//! [`conformance!`](crate::filesystem::conformance!) has a case that runs 64 sequences, or as many as `PROPTEST_CASES`
//! says. The parts are for tests with a custom model.

mod ops;
mod runner;
mod tree;

pub use ops::{Name, Op, sequence};
pub use runner::run;
pub use tree::{File, Found, Model, Node, Path, Verdict, matches};
