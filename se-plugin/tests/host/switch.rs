//! A switch that makes one method fail or panic.

use se_plugin::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The method that fails, and whether it panics. One test at a time uses it.
pub(crate) struct Switch {
    fault: Mutex<(&'static str, bool)>,
    user: Mutex<()>,
}

impl Switch {
    pub(crate) const fn new() -> Self {
        Self { fault: Mutex::new(("", false)), user: Mutex::new(()) }
    }

    /// Keeps others from using it.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `op` fails; none, if it is empty.
    pub(crate) fn set(&self, op: &'static str, panics: bool) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = (op, panics);
    }

    /// What `op` calls.
    pub(crate) fn trip(&self, op: &str) -> Result<()> {
        let (wanted, panics) = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match (wanted == op, panics) {
            (false, _) => Ok(()),
            (true, true) => panic!("requested it"),
            (true, false) => Err(Error::unavailable("requested it")),
        }
    }
}
