//! Measuring a plugin: what the processes that measure are told and tell, and what is made of it.
//!
//! One process drives the plugin's C tables, another one a real TensorFlow. Both get a [`Job`] as JSON, write one
//! [`Event`] a line into a file, and remove what they have made when their standard input ends: it is a pipe that
//! nobody writes to and that is closed with the command, however that ends.

mod follow;
mod html;
mod job;
pub(crate) mod machine;
mod measure;
pub(crate) mod report;
mod text;

pub(crate) use follow::Child;
pub(crate) use html::page;
pub use job::{Event, Job, Outcome, Row, Timing, bytes};
pub use measure::measure;
pub use report::grouped;
pub(crate) use text::text;

/// The argument that makes the tool the process that measures a plugin's tables.
pub const ARGUMENT: &str = "__bench-plugin";
