//! The trait of a profiler.

use super::xspace::XSpace;
use std::sync::Arc;
use tf_plugin_core::Result;

/// A profiler, which collects the events of a device while the user profiles.
///
/// For each profile TensorFlow calls [`start`](Self::start), [`stop`](Self::stop) and
/// [`collect`](Self::collect), one after the other; meanwhile other threads use the device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Profiler`",
    label = "`Profiler` is not implemented for this",
    note = "`se_plugin::profiler::Timeline` is one: `static TIMELINE: Timeline = Timeline::new(\"MY_DEVICE\");`, \
            and `profiler = &TIMELINE` in the attribute"
)]
pub trait Profiler: Send + Sync + 'static {
    /// Starts collecting.
    ///
    /// # Errors
    /// TensorFlow logs the error; the profile then has no events of the device.
    fn start(&self) -> Result<()>;

    /// Stops collecting.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    fn stop(&self) -> Result<()>;

    /// Returns the collected planes for TensorFlow, and keeps nothing.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    fn collect(&self) -> Result<XSpace>;
}

/// A profiler that other code refers to, too.
impl<T: Profiler> Profiler for &'static T {
    fn start(&self) -> Result<()> {
        T::start(self)
    }
    fn stop(&self) -> Result<()> {
        T::stop(self)
    }
    fn collect(&self) -> Result<XSpace> {
        T::collect(self)
    }
}

/// A profiler that other code refers to, too.
impl<T: Profiler> Profiler for Arc<T> {
    fn start(&self) -> Result<()> {
        T::start(self)
    }
    fn stop(&self) -> Result<()> {
        T::stop(self)
    }
    fn collect(&self) -> Result<XSpace> {
        T::collect(self)
    }
}
