//! What a plugin exports beside its platform.

use super::graph::GraphExport;
use super::profiler::ProfilerExport;
use crate::platform::Platform;

/// A platform that is exported: what `#[device_plugin]` implements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not exported",
    note = "put `#[device_plugin]` on the `impl Platform for {Self}`"
)]
pub trait Exported: Platform {
    /// The graph pass.
    fn graph() -> &'static GraphExport;
    /// The profiler.
    fn profiler() -> &'static ProfilerExport;
}
