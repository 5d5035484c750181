//! Sticky errors.

use crate::backend::{Gpu, again};
use se_plugin::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first failure of the device, which is kept.
pub(crate) struct Health {
    gpu: Arc<Gpu>,
    first: Mutex<Option<Error>>,
}

impl Health {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Self {
        Self { gpu: Arc::clone(gpu), first: Mutex::default() }
    }

    /// Locks the first failure. A GPU can be lost outside a queue: while memory is allocated or a shader compiled.
    fn first(&self) -> MutexGuard<'_, Option<Error>> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = self.gpu.lost();
        }
        first
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.first().as_ref().map_or(Ok(()), |error| Err(again(error)))
    }

    pub(crate) fn note(&self, error: Error) {
        let mut first = self.first();
        if first.is_none() {
            *first = Some(error);
        }
    }
}
