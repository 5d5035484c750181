//! Random sequences of operations, run through the C tables of a plugin and on a model beside it.
//!
//! [`sequence`] makes them, the other types say what each operation must answer, [`run`] holds a
//! filesystem against it. The codes are those of `filesystem_interface.h`; where several conditions
//! meet, any of their codes will do. [`conformance!`](crate::filesystem::conformance!) has a case that does this with 64
//! sequences, or as many as `PROPTEST_CASES` says; the parts are for tests with a model of their own.

mod ops;
mod runner;
mod tree;

pub use ops::{Name, Op, sequence};
pub use runner::run;
pub use tree::{File, Found, Model, Node, Path, Verdict, matches};
