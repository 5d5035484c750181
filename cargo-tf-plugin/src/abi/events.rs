//! The report: one line of JSON for each event. And the end of the process.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::{Mutex, OnceLock, PoisonError};

use cargo_tf_plugin::probe::Event;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Serialize;

static REPORT: OnceLock<Mutex<File>> = OnceLock::new();

/// Creates the file for the report.
pub(super) fn begin(report: &OsStr) -> io::Result<()> {
    let report = File::create(report)?;
    // Crashes are expected here and must leave no core files.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    let _ = REPORT.set(Mutex::new(report));
    Ok(())
}

pub(super) fn tell(event: &impl Serialize) {
    let (Some(report), Ok(mut line)) = (REPORT.get(), serde_json::to_vec(event)) else { return };
    line.push(b'\n');
    // Written at once, since the process may crash. Without a report nobody can be told that it cannot be written.
    let _ = report.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
}

pub(super) fn step(name: impl Into<String>) {
    tell(&Event::Step(name.into()));
}

/// Ends the process at once, without the plugin's exit handlers.
pub(super) fn leave() -> ! {
    // SAFETY: the function takes a number and does not return.
    unsafe { libc::_exit(0) }
}
