//! How long a failing request is made again: by time, whatever the number of its attempts.

use super::causes;
use super::retry::{code_of, retry_after};
use super::watch::longest_patience;
use crate::config::BucketSettings;
use crate::failure::PROXY_WANTS_CREDENTIALS;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use std::error::Error;
use std::fmt::Display;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// No wait between attempts is longer, unless the first one is or the store requests more. Short, so that work goes on
/// soon after an outage.
pub(crate) const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// A `Retry-After` is honoured up to this.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(20);
/// So many attempts are made where waiting does not end the cause: an answer that cannot be right, a certificate that is
/// not trusted.
pub(crate) const WRONG_ANSWERS: u32 = 6;

/// Time lost before this is not worth a warning.
const QUIET: Duration = Duration::from_secs(3);
/// The least time between two warnings of a process, in milliseconds.
const SILENCE_MS: u64 = 30_000;

/// The time that a request may still lose to failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    all: Duration,
    left: Duration,
    /// What one attempt counts at most: a transfer may have moved for an hour before it broke.
    attempt: Duration,
}

impl Patience {
    pub(crate) fn new(settings: &BucketSettings) -> Self {
        let all = settings.retry_timeout;
        // Half: a second attempt is always made.
        Self { all, left: all, attempt: longest_patience(settings.stall_timeout).min(all / 2) }
    }

    /// After an attempt that took `took` and failed, `waited` after the one before it: the longest wait until the next
    /// attempt, `None` if there is none.
    pub(crate) fn lose(&mut self, waited: Duration, took: Duration) -> Option<Duration> {
        self.left = self.left.saturating_sub(waited.saturating_add(took.min(self.attempt)));
        (!self.left.is_zero()).then_some(self.left)
    }

    /// Tells whoever reads the log that something is waited for, once in a while.
    pub(crate) fn warn(&self, what: &dyn Display, why: impl FnOnce() -> String) {
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
                why(),
                self.left.as_secs().max(1)
            );
        }
    }
}

/// How long to wait after so many failures: at random, so that many requests do not come back at once.
pub(crate) fn backoff(first: Duration, failures: u32) -> Duration {
    // Keyed anew for each value.
    let random = RandomState::new().hash_one(0);
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(10));
    let longest = doubled.min(LONGEST_BACKOFF.max(first));
    longest.mul_f64(0.1 + 0.9 * (random >> 11) as f64 / (1u64 << 53) as f64)
}

/// Whether a request got no answer for a reason that waiting does not end: nobody is away, but settings are wrong.
pub(crate) fn will_stay(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    for _ in 0..16 {
        let Some(error) = next else { break };
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            use rustls::Error::{InvalidCertificate, InvalidMessage, PeerIncompatible};
            return matches!(tls, InvalidCertificate(_) | InvalidMessage(_) | PeerIncompatible(_));
        }
        next = match error.downcast_ref::<io::Error>() {
            // Its `source` leaves out what it is made of.
            Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    causes(error).contains(PROXY_WANTS_CREDENTIALS)
}

/// Ends the attempts of the SDK's client when the patience with a request has ended.
#[derive(Debug)]
pub(super) struct Patient {
    /// For the log.
    pub(super) bucket: Arc<str>,
    pub(super) settings: Arc<BucketSettings>,
}

/// Where a request stands.
#[derive(Debug)]
struct State {
    patience: Patience,
    /// When the last attempt failed, or the request began.
    failed: Instant,
    /// When the last attempt began.
    began: Instant,
    /// How many attempts failed for what waiting does not end.
    wrong: u32,
}

impl Storable for State {
    type Storer = StoreReplace<Self>;
}

impl Intercept for Patient {
    fn name(&self) -> &'static str {
        "s3 patience"
    }

    /// Runs at the beginning of each attempt, after the wait for it.
    fn modify_before_signing(
        &self,
        _: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = Instant::now();
        let (patience, failed, wrong) = match cfg.load::<State>() {
            Some(state) => (state.patience, state.failed, state.wrong),
            None => (Patience::new(&self.settings), now, 0),
        };
        cfg.interceptor_state().store_put(State { patience, failed, began: now, wrong });
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Err(error)) = context.output_or_error() else { return Ok(()) };
        // What failed before it was signed was not sent, and is not sent again.
        let Some(&State { mut patience, failed, began, mut wrong }) = cfg.load::<State>() else {
            return Ok(());
        };
        let Some(config) = cfg.load::<RetryConfig>().cloned() else { return Ok(()) };
        let number = cfg.load::<RequestAttempts>().map_or(1, RequestAttempts::attempts);
        let now = Instant::now();
        let answer = context.response();
        let is_wrong = match answer {
            // Some errors come as a success.
            Some(answer) => {
                let body = answer.body().bytes().unwrap_or_default();
                answer.status().is_success() && code_of(body).is_none()
            }
            None => error.as_connector_error().is_some_and(|error| will_stay(error)),
        };
        wrong += u32::from(is_wrong);
        let longest = if answer.is_some_and(|answer| retry_after(answer).is_some()) {
            LONGEST_RETRY_AFTER
        } else {
            LONGEST_BACKOFF.max(config.initial_backoff())
        };
        let left = patience.lose(began.saturating_duration_since(failed), now - began);
        let config = match left.filter(|_| !is_wrong || wrong < WRONG_ANSWERS) {
            Some(left) => config.with_max_backoff(longest.min(left)),
            None => config.with_max_attempts(number),
        };
        if left.is_some() && number < config.max_attempts() {
            patience.warn(&format_args!("bucket {}", self.bucket), || match answer {
                Some(answer) => format!("the store responds with HTTP {}", answer.status()),
                None => match error.as_connector_error() {
                    Some(error) => causes(error),
                    None => "no response".to_owned(),
                },
            });
        }
        cfg.interceptor_state().store_put(State { patience, failed: now, began, wrong });
        cfg.interceptor_state().store_put(config);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(all: u64, stall: u64) -> Patience {
        let settings = BucketSettings {
            retry_timeout: Duration::from_millis(all),
            stall_timeout: Duration::from_millis(stall),
            ..BucketSettings::default()
        };
        Patience::new(&settings)
    }

    #[test]
    fn waits_and_attempts_count() {
        let second = Duration::from_secs(1);
        let mut patience = patience(10_000, 1_000);
        assert_eq!(patience.lose(Duration::ZERO, second), Some(9 * second));
        assert_eq!(patience.lose(3 * second, second), Some(5 * second));
        assert_eq!(patience.lose(4 * second, second), None);
        assert_eq!(patience.lose(Duration::ZERO, Duration::ZERO), None);
    }

    #[test]
    fn a_long_transfer_that_breaks_is_begun_again() {
        let hour = Duration::from_secs(3600);
        let mut short = patience(60_000, 20_000);
        // 20 s, and what the system may hold back.
        let left = short.lose(Duration::ZERO, hour).expect("more attempts");
        assert!((Duration::from_secs(31)..Duration::from_secs(40)).contains(&left), "{left:?}");
        let mut long = patience(60_000, 3_600_000);
        assert_eq!(long.lose(Duration::ZERO, hour), Some(Duration::from_secs(30)));
        assert_eq!(long.lose(Duration::ZERO, hour), None);
        assert_eq!(patience(0, 1).lose(Duration::ZERO, Duration::ZERO), None, "switched off");
    }
}
