//! What the benchmarks share: building and loading two plugins, driving their C tables, counting
//! instructions, and writing the results into `docs/benchmarks.md`.

#[allow(unsafe_code, reason = "calls C tables; every block is argued")]
mod abi;
pub mod build;
pub mod callgrind;
pub mod report;
pub mod rows;
pub mod same;
pub mod stats;

pub use abi::{Host, Outcome, Plugin, Reader, Writer};
