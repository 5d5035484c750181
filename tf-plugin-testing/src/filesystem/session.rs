//! The state that a host shares with everything that is open on it.

use crate::violations::Log;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The state that a host shares with everything that is open on it.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) log: Arc<Log>,
    pub(super) read_once: AtomicBool,
}

/// Runs when the host and everything that is open on it are dropped.
impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.log.check();
        }
    }
}
