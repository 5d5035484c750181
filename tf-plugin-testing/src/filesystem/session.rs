//! What a host shares with all that is open on it.

use crate::violations::Log;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a host shares with all that is open on it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) log: Arc<Log>,
    pub(super) read_once: AtomicBool,
}

impl Session {
    pub(super) fn reads_again(&self) -> bool {
        !self.read_once.load(Ordering::Relaxed)
    }
}

/// The end of the host and of all that is open on it.
impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.log.check();
        }
    }
}
