//! Measures plugins: the jobs and events of the measuring processes, and the report.
//!
//! One process calls the plugin's C tables, another one runs a real TensorFlow. Both get a [`Job`] as JSON and write
//! one [`Event`] per line to a file. They remove what they have created when their standard input ends: it is a pipe
//! that nobody writes to, and that is closed when the command ends, for any reason.

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
