//! The attempts of one request of a write.

use crate::{
    Class, Failure, LONGEST_RETRY_AFTER, ObjectStore, Patience, Settings, WRONG_ANSWERS, backoff,
};
use std::fmt::Display;
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::time::Instant;

/// Attempts made at once, without counting: over each idle connection one may fail.
const SPURIOUS: u32 = 80;
/// An upload that is slower than this counts as broken.
const SLOWEST_BYTES_PER_MS: u64 = 100;

/// The attempts of one request.
#[derive(Debug)]
pub(super) struct Attempts {
    failed: u32,
    /// Those of them whose cause will not go away.
    wrong: u32,
    spurious: u32,
    patience: Patience,
    waited: Duration,
    began: Instant,
}

impl Attempts {
    pub(super) fn new(settings: &Settings) -> Self {
        let patience = Patience::new(settings);
        let (waited, began) = (Duration::ZERO, Instant::now());
        Self { failed: 0, wrong: 0, spurious: 0, patience, waited, began }
    }

    /// The number of the next attempt, counted from 1.
    pub(super) fn number(&self) -> u32 {
        self.failed + 1
    }

    /// Makes one attempt, of a request that sends `bytes`.
    pub(super) async fn run<S: ObjectStore, T>(
        &mut self,
        store: &S,
        bytes: u64,
        request: impl Future<Output = Result<T, S::Failure>>,
    ) -> Result<T, S::Failure> {
        self.began = Instant::now();
        if S::HAS_DEADLINES {
            return request.await;
        }
        let stall = store.settings().stall_timeout;
        let limit = stall + Duration::from_millis(bytes / SLOWEST_BYTES_PER_MS);
        let outcome = tokio::time::timeout(limit, request).await;
        outcome.unwrap_or_else(|_| Err(S::Failure::stalled(store.endpoint(), limit)))
    }

    /// Waits until another attempt is due.
    ///
    /// # Errors
    /// The failure if none is.
    #[cold]
    pub(super) async fn failed<F: Failure>(
        &mut self,
        settings: &Settings,
        what: &(dyn Display + Sync),
        failure: F,
    ) -> Result<(), F> {
        if failure.is_spurious() && self.spurious < SPURIOUS {
            self.spurious += 1;
            return Ok(());
        }
        self.failed += 1;
        let class = failure.class();
        self.wrong += u32::from(class == Class::Doubtful);
        let left = self.patience.lose(std::mem::take(&mut self.waited), self.began.elapsed());
        let may_pass = matches!(class, Class::Transient | Class::Doubtful);
        let is_over = self.failed >= settings.max_attempts || self.wrong >= WRONG_ANSWERS;
        let Some(left) = left.filter(|_| may_pass && !is_over) else { return Err(failure) };
        self.patience.warn(&what, || failure.summary());
        let own = backoff(settings.retry_backoff, self.failed);
        let asked = failure.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
        self.waited = own.max(asked).min(left);
        log::debug!(
            "{what}: attempt {} failed: {failure:?}; next in {:?}",
            self.failed,
            self.waited
        );
        tokio::time::sleep(self.waited).await;
        Ok(())
    }
}

/// Makes a request that may be made any number of times until it succeeds, or no further attempt is due.
pub(super) async fn request<S: ObjectStore, T, R>(
    store: &S,
    what: &(dyn Display + Sync),
    bytes: u64,
    make: impl Fn(u32) -> R,
) -> Result<T, (S::Failure, u32)>
where
    R: Future<Output = Result<T, S::Failure>>,
{
    let mut attempts = Attempts::new(store.settings());
    loop {
        let number = attempts.number();
        match attempts.run(store, bytes, make(number)).await {
            Ok(done) => return Ok(done),
            Err(failure) => attempts
                .failed(store.settings(), what, failure)
                .await
                .map_err(|failure| (failure, attempts.number() - 1))?,
        }
    }
}
