//! The platform, graph pass and profiler that a plugin exports.

use super::loads::Export;
use crate::graph::GraphPass;
use crate::platform::Platform;
use crate::profiler::Profiler;
use crate::sync::lock;
use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock};
use tf_plugin_core::{Error, Result};

/// The exported platform, for the plugin's static.
#[derive(Debug, Default)]
pub struct PlatformExport {
    /// How often the plugin was loaded.
    pub(super) loads: AtomicUsize,
    /// The type that the first load registers.
    pub(super) kind: OnceLock<CString>,
}

impl PlatformExport {
    /// Creates the export of a platform that is not loaded yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { loads: AtomicUsize::new(0), kind: OnceLock::new() }
    }

    /// Returns the device type that TensorFlow knows, or `None` before it loads the plugin.
    #[must_use]
    pub fn device_type(&self) -> Option<&CStr> {
        self.kind.get().map(CString::as_c_str)
    }
}

/// The author's graph pass, if there is one.
pub type GraphExport = Export<dyn GraphPass>;

/// The author's profiler, if there is one, and how often it was registered: for the plugin's static.
#[derive(Debug)]
pub struct ProfilerExport {
    pub(super) export: Export<dyn Profiler>,
    /// The profile whose size the host has requested, until it takes the bytes.
    collected: Mutex<Vec<u8>>,
}

impl ProfilerExport {
    /// Creates the export of a profiler that is not loaded yet; `make` creates the profiler, if there is one.
    #[must_use]
    pub const fn new(make: Option<fn() -> Box<dyn Profiler>>) -> Self {
        Self { export: Export::new(make), collected: Mutex::new(Vec::new()) }
    }

    /// Returns the profiler, which is created once.
    pub(super) fn profiler(&self) -> Option<&dyn Profiler> {
        self.export.get("TF_InitProfiler", "the profiler")
    }

    /// Runs `body` with the profiler, if there is one.
    pub(super) fn with(&self, body: impl FnOnce(&dyn Profiler) -> Result<()>) -> Result<()> {
        self.profiler().map_or(Ok(()), body)
    }

    /// Collects a profile and returns its size in bytes.
    pub(super) fn collect(&self) -> Result<usize> {
        let mut bytes = Vec::new();
        self.with(|profiler| {
            bytes = profiler.collect()?.encode();
            Ok(())
        })?;
        // The host parses it as a protocol buffer, which has less than 2 GiB.
        if i32::try_from(bytes.len()).is_err() {
            return Err(Error::resource_exhausted("the profile has 2 GiB or more"));
        }
        let size = bytes.len();
        *lock(&self.collected) = bytes;
        Ok(size)
    }

    pub(super) fn take_collected(&self) -> Vec<u8> {
        core::mem::take(&mut *lock(&self.collected))
    }
}

/// A platform that is exported; `#[device_plugin]` implements this.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not exported",
    note = "put `#[device_plugin]` on the `impl Platform for {Self}`"
)]
pub trait Exported: Platform {
    /// Returns the graph pass.
    fn graph() -> &'static GraphExport;
    /// Returns the profiler.
    fn profiler() -> &'static ProfilerExport;
}
