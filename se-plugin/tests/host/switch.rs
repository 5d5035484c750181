//! A switch that makes one method fail or panic.

use se_plugin::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The method that fails. One test at a time uses it.
pub(crate) struct Switch {
    fault: Mutex<Fault>,
    user: Mutex<()>,
}

struct Fault {
    op: &'static str,
    panics: bool,
    /// How often it was called.
    met: usize,
}

impl Switch {
    pub(crate) const fn new() -> Self {
        let none = Fault { op: "", panics: false, met: 0 };
        Self { fault: Mutex::new(none), user: Mutex::new(()) }
    }

    /// Keeps others from using it.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `op` fails; none, if it is empty. Returns how often the last one was called.
    pub(crate) fn set(&self, op: &'static str, panics: bool) -> usize {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *fault, Fault { op, panics, met: 0 }).met
    }

    /// What `op` calls.
    pub(crate) fn trip(&self, op: &str) -> Result<()> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if fault.op != op {
            return Ok(());
        }
        fault.met += 1;
        assert!(!fault.panics, "requested it");
        Err(Error::unavailable("requested it"))
    }
}
