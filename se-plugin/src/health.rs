//! Sticky errors.

use crate::sync::{AtomicBool, ForkMutex, Ordering, lock_across_forks};
use std::sync::Arc;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Code, Error, Result};

/// The first failure of a device, or of a stream and so also of its device.
///
/// Results that were computed from those of failed work are wrong, so the failure stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Failure>);

#[derive(Debug, Default)]
struct Failure {
    happened: AtomicBool,
    first: ForkMutex<Option<(Code, String)>>,
    /// The device's health, if this is a stream's.
    device: Option<Health>,
}

impl Health {
    /// Creates the health of a stream of the device with this health.
    pub(crate) fn of_stream(&self) -> Self {
        Self(Arc::new(Failure { device: Some(self.clone()), ..Failure::default() }))
    }

    /// Notes and logs a failure that cannot be returned to TensorFlow at once.
    #[cold]
    pub(crate) fn note(&self, op: &'static str, error: &Error) {
        boundary::log_error(&format_args!(
            "`{op}` failed; the device reports it from now on: {error:#}"
        ));
        // The text of a cause is the author's code, which may panic.
        let text = boundary::catch(op, || Ok(format!("`{op}` failed: {error:#}")));
        let text = text.unwrap_or_else(|panic| format!("`{op}` failed: {}", panic.message()));
        for failure in
            [Some(&self.0), self.0.device.as_ref().map(|device| &device.0)].into_iter().flatten()
        {
            let mut first = lock_across_forks(&failure.first);
            first.get_or_insert_with(|| (error.code(), text.clone()));
            failure.happened.store(true, Ordering::Release);
        }
    }

    /// Returns the first failure as an error, if there was one.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.happened.load(Ordering::Acquire) { self.first() } else { Ok(()) }
    }

    #[cold]
    fn first(&self) -> Result<()> {
        match &*lock_across_forks(&self.0.first) {
            Some((code, text)) => Err(Error::new(*code, text.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::holds_in_a_child_forked_beside;
    use core::fmt;

    #[derive(Debug)]
    struct PanickingError;

    impl fmt::Display for PanickingError {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("no text")
        }
    }

    impl std::error::Error for PanickingError {}

    #[test]
    fn a_failure_whose_text_panics_is_noted() {
        let health = Health::default();
        health.note("copy", &Error::unavailable("gone").with_source(PanickingError));
        let error = health.check().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains("`copy` failed"), "{error}");
    }

    #[test]
    fn a_fork_notes_failures_while_another_thread_does() {
        let health = Health::default();
        let take = || lock_across_forks(&health.0.first);
        holds_in_a_child_forked_beside(take, || {
            health.note("copy", &Error::unavailable("gone"));
            health.check().is_err()
        });
    }
}
