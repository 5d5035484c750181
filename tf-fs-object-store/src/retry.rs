//! How long a failing request is made again: by time, whatever the number of its attempts.

use crate::redact::redacted;
use crate::{ErrorKind, Settings, StoreError};
use std::fmt::{Debug, Display};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tf_fs_plugin::prelude::*;
use tokio::time::Instant;

/// Bytes that the system may hold of an upload. A connection is taken to move one a microsecond at least.
pub(crate) const BUFFERED: u64 = 8 << 20;

/// Returns the time that the system's buffers may add to `stall`.
pub(crate) fn max_grace(stall: Duration) -> Duration {
    Duration::from_micros(BUFFERED).min(stall * 4)
}

/// No request that makes no progress is waited for longer than this.
pub fn max_wait(stall: Duration) -> Duration {
    stall + max_grace(stall)
}

/// No wait between attempts is longer, unless the first one is or the store requests more. Short, so that work goes on
/// soon after an outage.
pub const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// A `Retry-After` is honoured up to this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(20);
/// So many attempts are made where waiting does not end the cause: an answer that cannot be right, a certificate that is
/// not trusted.
pub const MAX_INVALID_RESPONSES: u32 = 6;

/// Attempts made at once, without counting: over each idle connection one may fail.
const SPURIOUS: u32 = 80;
/// Time lost before this is not worth a warning.
const QUIET: Duration = Duration::from_secs(3);
/// The least time between two warnings of a process, in milliseconds.
const SILENCE_MS: u64 = 30_000;

/// An attempt of a request.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    /// When it began.
    pub began: std::time::Instant,
    /// When the first attempt of the same request began.
    pub first_began: std::time::Instant,
}

tokio::task_local! {
    static ATTEMPT: Attempt;
}

/// The attempt that the engine makes: for logs and metrics, and to tell what was learned since. Known while a future of
/// [`ObjectStore`](crate::ObjectStore) runs, and not on threads or tasks that it begins; there it is a first one.
pub fn attempt() -> Attempt {
    let first = |_| {
        let began = std::time::Instant::now();
        Attempt { number: 1, began, first_began: began }
    };
    ATTEMPT.try_with(|&attempt| attempt).unwrap_or_else(first)
}

/// The time that a request may still lose to failures.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    all: Duration,
    left: Duration,
    /// The maximum time that one attempt counts: a transfer may have moved for an hour before it broke.
    attempt: Duration,
}

impl RetryBudget {
    /// All of the time that the settings allow.
    pub fn new(settings: &Settings) -> Self {
        let all = settings.retry_timeout;
        // Half: a second attempt is always made.
        Self { all, left: all, attempt: max_wait(settings.stall_timeout).min(all / 2) }
    }

    /// After an attempt that took `took` and failed, `waited` after the one before it: the longest wait until the next
    /// attempt, `None` if there is none.
    pub fn spend(&mut self, waited: Duration, took: Duration) -> Option<Duration> {
        self.left = self.left.saturating_sub(waited.saturating_add(took.min(self.attempt)));
        (!self.left.is_zero()).then_some(self.left)
    }

    /// Tells whoever reads the log that something is waited for, once in a while.
    pub fn warn(&self, what: &dyn Display, why: impl FnOnce() -> String) {
        static WARNED: AtomicU64 = AtomicU64::new(0);
        if self.all.saturating_sub(self.left) < QUIET {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let before = WARNED.load(Ordering::Relaxed);
        if now.abs_diff(before) >= SILENCE_MS
            && WARNED.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            log::warn!(
                "{what}: {}; trying again for up to {} s more",
                redacted(&why()),
                self.left.as_secs().max(1)
            );
        }
    }
}

/// How long to wait after so many failures: at random, so that many requests do not come back at once.
pub fn backoff(first: Duration, failures: u32) -> Duration {
    // Keyed anew for each value.
    let random = RandomState::new().hash_one(0);
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(10));
    let longest = doubled.min(MAX_BACKOFF.max(first));
    longest.mul_f64(0.1 + 0.9 * (random >> 11) as f64 / (1u64 << 53) as f64)
}

/// The failures of a request so far.
#[derive(Debug, Default)]
pub(crate) struct RetryState {
    failed: u32,
    /// Those of them whose cause will not go away.
    doubtful: u32,
    /// Attempts that tell nothing of the store, such as over a connection that it had closed.
    spurious: u32,
    /// The time that is left for more; all of it before the first failure.
    patience: Option<RetryBudget>,
    /// How long was waited for the last attempt.
    waited: Duration,
    first_began: OnceLock<std::time::Instant>,
}

impl RetryState {
    /// The number of the next one that counts, from 1.
    pub(crate) fn next(&self) -> u32 {
        self.failed + 1
    }

    /// Makes one, in which [`attempt`] has its number among all. On the heap: the futures of a store's client are large,
    /// and without optimization each caller's stack would have them several times.
    pub(crate) fn run<T>(&self, attempt: impl Future<Output = T>) -> impl Future<Output = T> {
        let number = self.failed + self.spurious + 1;
        let began = std::time::Instant::now();
        let first_began = *self.first_began.get_or_init(|| began);
        let this = Attempt { number, began, first_began };
        ATTEMPT.scope(this, Box::pin(attempt))
    }

    /// Whether the failure says nothing, so that another attempt is made at once.
    pub(crate) fn retry_immediately(&self, failure: &impl StoreError) -> bool {
        failure.retry_immediately() && self.spurious < SPURIOUS
    }

    /// The request got on: what failed before does not count any more.
    pub(crate) fn forget(&mut self) {
        let first_began = std::mem::take(&mut self.first_began);
        *self = Self { spurious: self.spurious, first_began, ..Self::default() };
    }

    /// After an attempt that began at `began` and failed: how long to wait before the next.
    ///
    /// # Errors
    /// The failure if no further attempt is made.
    #[cold]
    pub(crate) fn failed<F: StoreError>(
        &mut self,
        settings: &Settings,
        op: &str,
        what: &dyn Display,
        failure: F,
        began: Instant,
    ) -> Result<Duration, FinalError<F>> {
        if self.retry_immediately(&failure) {
            self.spurious += 1;
            return Ok(Duration::ZERO);
        }
        self.failed += 1;
        let kind = failure.kind();
        self.doubtful += u32::from(kind == ErrorKind::InvalidResponse);
        let patience = self.patience.get_or_insert_with(|| RetryBudget::new(settings));
        let left = patience.spend(std::mem::take(&mut self.waited), began.elapsed());
        let is_over =
            self.failed >= settings.max_attempts || self.doubtful >= MAX_INVALID_RESPONSES;
        let may_pass = matches!(kind, ErrorKind::Transient | ErrorKind::InvalidResponse);
        let Some(left) = left.filter(|_| may_pass && !is_over) else {
            return Err(FinalError::new(failure, op, what, self.failed));
        };
        patience.warn(what, || failure.summary());
        let own = backoff(settings.retry_backoff, self.failed);
        let wanted = failure.retry_after().unwrap_or_default();
        self.waited = own.max(wanted.min(MAX_RETRY_AFTER)).min(left);
        log::debug!(
            "{what}: {op}: attempt {} failed: {}; next in {:?}",
            self.failed,
            redacted(&format!("{failure:?}")),
            self.waited
        );
        Ok(self.waited)
    }
}

/// The failure of a request that is not made again.
#[derive(Debug)]
pub(crate) struct FinalError<F> {
    failure: F,
    op: String,
    what: String,
    attempts: u32,
}

impl<F: StoreError> FinalError<F> {
    pub(crate) fn kind(&self) -> ErrorKind {
        self.failure.kind()
    }

    /// The failure of a request of one attempt.
    pub(crate) fn of(failure: F, op: &str, what: &dyn Display) -> Self {
        Self::new(failure, op, what, 1)
    }

    #[cold]
    fn new(failure: F, op: &str, what: &dyn Display, attempts: u32) -> Self {
        Self { failure, op: op.to_owned(), what: what.to_string(), attempts }
    }

    /// The error for the user.
    pub(crate) fn into_error(self) -> Error {
        self.failure.into_error(&self.op, &self.what, self.attempts)
    }
}

impl<F: StoreError> From<FinalError<F>> for Error {
    fn from(error: FinalError<F>) -> Self {
        error.into_error()
    }
}

/// A request, and how often and how long it is tried.
pub(crate) struct Request<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) op: &'a str,
    /// For the log.
    pub(crate) what: &'a (dyn Display + Sync),
    /// How long one attempt may take, and of whom that is said otherwise; `None` if each ends by itself.
    pub(crate) deadline: Option<(Duration, String)>,
}

impl Request<'_> {
    /// Makes an attempt after these.
    pub(crate) async fn attempt<T, F: StoreError>(
        &self,
        attempts: &RetryState,
        attempt: impl Future<Output = Result<T, F>>,
    ) -> Result<T, F> {
        let attempt = attempts.run(attempt);
        match &self.deadline {
            Some((time, endpoint)) => tokio::time::timeout(*time, attempt)
                .await
                .unwrap_or_else(|_| Err(F::stalled(endpoint.clone(), *time))),
            None => attempt.await,
        }
    }

    /// Makes the request until it succeeds, or its failure does not pass any more.
    pub(crate) async fn make<T, F: StoreError, R: Future<Output = Result<T, F>>>(
        &self,
        request: impl Fn() -> R,
    ) -> Result<T, FinalError<F>> {
        let mut attempts = RetryState::default();
        loop {
            let began = Instant::now();
            let failure = match self.attempt(&attempts, request()).await {
                Ok(done) => return Ok(done),
                Err(failure) if failure.kind() == ErrorKind::NotFound => {
                    return Err(FinalError::new(failure, self.op, &self.what, attempts.next()));
                }
                Err(failure) => failure,
            };
            let wait = attempts.failed(self.settings, self.op, &self.what, failure, began)?;
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(all: u64, stall: u64) -> RetryBudget {
        let settings = Settings {
            retry_timeout: Duration::from_millis(all),
            stall_timeout: Duration::from_millis(stall),
            ..Settings::default()
        };
        RetryBudget::new(&settings)
    }

    #[test]
    fn waits_and_attempts_count() {
        let second = Duration::from_secs(1);
        let mut patience = patience(10_000, 1_000);
        assert_eq!(patience.spend(Duration::ZERO, second), Some(9 * second));
        assert_eq!(patience.spend(3 * second, second), Some(5 * second));
        assert_eq!(patience.spend(4 * second, second), None);
        assert_eq!(patience.spend(Duration::ZERO, Duration::ZERO), None);
    }

    #[test]
    fn a_long_transfer_that_breaks_is_begun_again() {
        let hour = Duration::from_secs(3600);
        let mut short = patience(60_000, 20_000);
        // 20 s, and what the system may hold back.
        let left = short.spend(Duration::ZERO, hour).expect("more attempts");
        assert!((Duration::from_secs(31)..Duration::from_secs(40)).contains(&left), "{left:?}");
        let mut long = patience(60_000, 3_600_000);
        assert_eq!(long.spend(Duration::ZERO, hour), Some(Duration::from_secs(30)));
        assert_eq!(long.spend(Duration::ZERO, hour), None);
        assert_eq!(patience(0, 1).spend(Duration::ZERO, Duration::ZERO), None, "switched off");
    }
}
