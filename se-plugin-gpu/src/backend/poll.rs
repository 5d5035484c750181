//! Waits for a driver that can only be asked.

use super::BackendResult;
use std::thread;
use std::time::{Duration, Instant};

/// How long a wait only yields to other threads, since most batches take no longer.
const SPIN: Duration = Duration::from_micros(50);
/// The pause between later checks.
const PAUSE: Duration = Duration::from_micros(50);

/// Waits until `is_done` returns `true`, for at most `limit`. Returns whether it did.
///
/// # Errors
/// Those of `is_done`.
pub fn poll(
    limit: Duration,
    mut is_done: impl FnMut() -> BackendResult<bool>,
) -> BackendResult<bool> {
    let since = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        match since.elapsed() {
            waited if waited >= limit => return Ok(false),
            waited if waited < SPIN => thread::yield_now(),
            waited => thread::sleep(PAUSE.min(limit - waited)),
        }
    }
}
