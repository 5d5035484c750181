//! Sticky errors.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_plugin::__private::boundary;
use tf_fs_plugin::{Code, Error, Result};

/// The first failure of a device, or of a stream and so of its device.
///
/// What was computed from the result of failed work is wrong, so the failure stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    own: Arc<Failure>,
    device: Option<Arc<Failure>>,
}

#[derive(Debug, Default)]
struct Failure {
    happened: AtomicBool,
    first: Mutex<Option<(Code, String)>>,
}

impl Health {
    /// The health of a stream of the device with this health.
    pub(crate) fn of_stream(&self) -> Self {
        Self { own: Arc::default(), device: Some(Arc::clone(&self.own)) }
    }

    /// Notes and logs a failure that TensorFlow cannot be told of right now.
    pub(crate) fn note(&self, op: &'static str, error: &Error) {
        boundary::log_error(&format_args!(
            "`{op}` failed; the device reports it from now on: {error:#}"
        ));
        for failure in [Some(&self.own), self.device.as_ref()].into_iter().flatten() {
            let mut first = failure.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| (error.code(), format!("`{op}` failed: {error:#}")));
            failure.happened.store(true, Ordering::Release);
        }
    }

    /// The first failure, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.own.happened.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*self.own.first.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((code, text)) => Err(Error::new(*code, text.clone())),
            None => Ok(()),
        }
    }
}
