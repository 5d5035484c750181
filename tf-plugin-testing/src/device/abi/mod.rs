//! The host's side of the C boundary.

mod device;
mod graph;
mod guarded;
mod handles;
mod host;
mod profiler;
#[cfg(test)]
mod violations;

pub use device::TestDevice;
pub use graph::{GraphHost, GraphSizes};
pub use handles::{TestEvent, TestStream, TestTimer};
pub use host::{Host, Sizes};
pub use profiler::{ProfilerHost, ProfilerSizes};
