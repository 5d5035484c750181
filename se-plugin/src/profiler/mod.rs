//! Profilers: the events of a device, next to the host's events in TensorFlow's own profile.
//!
//! Name the profiler in the attribute that exports the platform. It is an expression, which is evaluated when
//! the plugin is loaded. [`Timeline`] is a ready-made profiler, which records the events of a device:
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
//! // When a stream is created:
//! let line: Line = TIMELINE.line(0, "Stream 1");
//!
//! // When a kernel is done: how long it ran, by the device's clock or the host's.
//! let start = profiler::now();
//! TIMELINE.record(line, "MatMul", start, Duration::from_micros(12));
//! ```
//!
//! Users see the lines in the trace viewer of TensorBoard, below those of the host, after
//! `tf.profiler.experimental.start(…)` and `stop()`.

mod interface;
mod timeline;
mod xspace;

pub use interface::Profiler;
pub use timeline::{Line, Span, Timeline, now};
pub use xspace::{StatValue, XEvent, XLine, XPlane, XSpace, XStat};
