//! The process that loads a plugin in place of TensorFlow: all that is unsafe in this tool, and nothing else.
//!
//! `standins` are the functions that plugins expect of TensorFlow, under the same names; the program exports them
//! (see `build.rs`), so that plugins which import them and plugins which look them up at run time both find them.
//! `load` opens a plugin and calls its entry points in TensorFlow's order; `schemes` is what it does with filesystems.
//! What they do is reported line by line, so that a report is as long as the plugin has lived.
//! `bench` calls what a plugin has filled in, over and over, and says how long that takes.
//!
//! This is part of the program and not of the library: other programs that use the library must not have functions
//! of TensorFlow's names.

mod bench;
mod events;
mod load;
mod schemes;
mod standins;

pub(crate) use bench::run as bench;
pub(crate) use load::run;
