//! Random sequences of operations, run through the C tables of a plugin and on a model beside it.
//!
//! [`sequence`] makes them, [`model`] says what each operation must answer, [`run`] holds a filesystem
//! against it. The codes are those of `filesystem_interface.h`; where several conditions meet, any of
//! their codes will do.

#![forbid(unsafe_code)]

pub mod model;
mod ops;
mod runner;

pub use ops::{Name, Op, sequence};
pub use runner::{config, run};
