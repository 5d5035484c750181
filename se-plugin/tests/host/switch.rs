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

    /// Keeps other tests from using the switch. Nothing fails at first.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        let user = self.user.lock().unwrap_or_else(PoisonError::into_inner);
        self.set("", false);
        user
    }

    /// Makes `op` fail from now on, or nothing if it is empty.
    pub(crate) fn set(&self, op: &'static str, panics: bool) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = (op, panics);
    }

    /// Fails or panics if `op` was set. Each `op` calls this.
    pub(crate) fn trip(&self, op: &str) -> Result<()> {
        match *self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            (fault, _) if fault != op => Ok(()),
            (_, false) => Err(Error::unavailable("requested it")),
            (_, true) => panic!("requested it"),
        }
    }
}
