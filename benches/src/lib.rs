//! What the benchmarks share: building and loading two plugins, driving their C tables, counting
//! instructions, and writing the results into `docs`.

#[allow(unsafe_code, reason = "calls C tables; every block is argued")]
mod abi;
pub mod build;
pub mod callgrind;
pub mod device;
pub mod report;
pub mod rows;
pub mod same;
pub mod stats;

pub use abi::{Copying, Device, Event, Filling, Host, Outcome, Plugin, Reader, Stream, Writer};
