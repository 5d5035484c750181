//! The process that loads a plugin in place of TensorFlow: everything that is unsafe in this tool, and nothing else.
//!
//! `stubs` has the functions that plugins expect of TensorFlow, under the same names. The program exports them (see
//! `build.rs`), for plugins that import them and for plugins that look them up at run time. `load` opens a plugin and
//! calls its entry points in TensorFlow's order; `schemes` does so for filesystems. Each step is reported on its own
//! line, so a report is complete up to the moment of a crash. `bench` calls the functions that a plugin has filled in,
//! many times, and reports how long they take.
//!
//! This is part of the program and not of the library: other programs that use the library must not have functions
//! of TensorFlow's names.

mod bench;
mod events;
mod load;
mod schemes;
mod stubs;

pub(crate) use bench::run as bench;
pub(crate) use load::run;
