//! What the plugin logs, at every level, kept to look for what must not be there.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::{Mutex, PoisonError};

struct Kept;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Log for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // The server of the tests, in the same process, logs the requests that it receives.
        if record.target().starts_with("s3s") {
            return;
        }
        let line = format!("{} {}: {}", record.level(), record.target(), record.args());
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn flush(&self) {}
}

/// Keeps all lines from now on. Comes before the first use of the plugin, which would install its own logger.
///
/// # Panics
/// If there is a logger already.
pub fn keep() {
    log::set_logger(&Kept).expect("no other logger");
    log::set_max_level(LevelFilter::Trace);
}

/// The lines so far.
#[must_use]
pub fn lines() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
