//! The process that loads a plugin in place of TensorFlow: all that is unsafe in this tool, and nothing else.
//!
//! `standins` are the functions that plugins expect of TensorFlow, under the same names; the program exports them
//! (see `build.rs`), so that plugins which import them and plugins which look them up at run time both find them.
//! `load` opens a plugin and calls its entry points in TensorFlow's order; `schemes` is what it does with filesystems. What they do is reported line by line,
//! so that a report is as long as the plugin has lived.
//! `bench` calls what a plugin has filled in, over and over, and says how long that takes.
//!
//! This is part of the program and not of the library: other programs that use the library must not have functions
//! of TensorFlow's names.

mod bench;
mod load;
mod schemes;
mod standins;

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use cargo_tf_plugin::probe::Event;

pub(crate) use bench::run as bench;
pub(crate) use load::run;

/// Where the events go.
static REPORT: OnceLock<Mutex<File>> = OnceLock::new();

fn tell(event: &Event) {
    let (Some(report), Ok(mut line)) = (REPORT.get(), serde_json::to_vec(event)) else { return };
    line.push(b'\n');
    // At once, whatever happens next. Without a report there is nobody to tell that it cannot be written.
    let _ = report.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
}

fn step(name: impl Into<String>) {
    tell(&Event::Step(name.into()));
}

/// Ends the process at once: what a plugin has for the end of a process is not this one's.
fn leave() -> ! {
    // SAFETY: the function takes a number and does not return.
    unsafe { libc::_exit(0) }
}
