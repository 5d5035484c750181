//! Profilers: what a device did, beside what TensorFlow's own profiler saw of the host.
//!
//! A profiler is named in the attribute that exports the platform, as an expression that is evaluated when
//! the plugin is loaded. [`Timeline`] is one that only has to be told what the device did:
//!
//! ```
//! use se_plugin::profiler::{self, Line, Timeline};
//! use std::time::Duration;
//!
//! static TIMELINE: Timeline = Timeline::new("MY_DEVICE");
//!
//! // #[device_plugin(profiler = &TIMELINE)]
//! // impl Platform for MyPlatform { … }
//!
//! // When a stream is made:
//! let line: Line = TIMELINE.line(0, "Stream 1");
//!
//! // When a kernel is done: how long it ran, by the device's clock or the host's.
//! let start = profiler::now();
//! TIMELINE.record(line, "MatMul", start, Duration::from_micros(12));
//! ```
//!
//! Users see the lines in the trace viewer of TensorBoard, below those of the host, after
//! `tf.profiler.experimental.start(…)` and `stop()`.

mod timeline;
mod xspace;

pub use timeline::{Line, Span, Timeline, now};
pub use xspace::{StatValue, XEvent, XLine, XPlane, XSpace, XStat};

use std::sync::Arc;
use tf_plugin_core::Result;

/// Collects what a device does while the user profiles.
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
    /// TensorFlow logs the error; the profile then has nothing of the device.
    fn start(&self) -> Result<()>;

    /// Stops collecting.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    fn stop(&self) -> Result<()>;

    /// Hands over what was collected, and keeps nothing of it. TensorFlow takes the planes.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    fn collect(&self) -> Result<XSpace>;
}

/// One that others hold too.
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

/// One that others hold too.
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
