//! The C boundary: everything unsafe in this crate, and the types that make it safe.
//!
//! `platform`, `executor`, `graph` and `profiler` have one `extern "C"` function for each slot of TensorFlow's
//! tables. Each is a few lines around a guard: it checks and converts the arguments, calls the author's method, catches
//! a panic and writes the status. `versions` is the only place that accesses the host's versioned structs.

pub(crate) mod device_type;
pub(crate) mod driver;
mod event;
mod executor;
pub(crate) mod exit;
pub(crate) mod exports;
pub(crate) mod graph;
pub(crate) mod host;
pub(crate) mod host_buf;
pub(crate) mod host_callback;
pub(crate) mod host_memory;
pub(crate) mod host_ptr;
pub(crate) mod host_release;
pub(crate) mod kernel;
pub(crate) mod loads;
mod pending_copies;
pub(crate) mod platform;
pub(crate) mod profiler;
mod recorded_stream;
mod state;
pub(crate) mod versions;
mod work;
