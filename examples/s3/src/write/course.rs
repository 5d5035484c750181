//! What the attempts of one write have shown so far, and when it is made again.

use super::object::{leaves_open_whether_done, status_of};
use crate::config::BucketSettings;
use crate::connection::{Attempt, Known, TooLarge, retry_after};
use crate::failure::find;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::FinalizerInterceptorContextRef;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_types::retry::RetryConfig;
use std::mem;
use std::time::Duration;
use tf_fs_object_store::http::will_stay;
use tf_fs_object_store::{LONGEST_RETRY_AFTER, Name, Patience, WRONG_ANSWERS, backoff};
use tokio::time::Instant;

/// The attempts of one write.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// The form of a condition that was refused although nothing had changed, and how often in a row.
    refused: Option<(Known, u32)>,
    /// Whether the ETag with quotes was refused so, twice in a row.
    pub(super) quotes_refused: bool,
    /// Whether the store said that it knows no such condition, so that it is left out.
    pub(super) is_unknown: bool,
    /// Whether HeadObject has been asked since the last attempt.
    pub(super) has_looked: bool,
    /// Whether the store may have done an attempt that failed.
    pub(super) is_open: bool,
    patience: Option<Patience>,
    began: Option<Instant>,
    waited: Duration,
    attempts: u32,
    wrong: u32,
}

impl Course {
    /// `is_open`: whether the store may have done an earlier request for the same that failed.
    pub(super) fn after(is_open: bool) -> Self {
        Self { is_open, ..Self::default() }
    }

    /// Notes that an attempt begins. What was looked at is past then.
    pub(super) fn begin(&mut self) {
        self.has_looked = false;
        self.began = Some(Instant::now());
    }

    /// Notes that a condition of this form was refused although nothing had changed. How often in a row.
    pub(super) fn refused(&mut self, form: Known) -> u32 {
        let before = self.refused.filter(|(refused, _)| *refused == form);
        let count = before.map_or(0, |(_, count)| count) + 1;
        self.refused = Some((form, count));
        count
    }

    /// Whether the last attempt was refused although nothing had changed.
    pub(super) fn was_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// After an attempt of [`Once`] that failed: waits until another one is due; `false` if none is.
    pub(super) async fn again<E>(
        &mut self,
        settings: &BucketSettings,
        name: &Name,
        error: &SdkError<E>,
    ) -> bool
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        self.is_open |= leaves_open_whether_done(error);
        self.attempts += 1;
        let Some(cause) = Cause::of(error) else { return false };
        self.wrong += u32::from(cause == Cause::Wrong);
        let patience = self.patience.get_or_insert_with(|| Patience::new(&settings.engine));
        let took = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        let left = patience.lose(mem::take(&mut self.waited), took);
        let is_over = self.attempts >= settings.engine.max_attempts || self.wrong >= WRONG_ANSWERS;
        let Some(left) = left.filter(|_| !is_over) else { return false };
        patience.warn(name, || match status_of(error) {
            Some(status) => format!("the store responds with HTTP {status}"),
            None => "no response".to_owned(),
        });
        let own = backoff(settings.engine.retry_backoff, self.attempts);
        let asked = error.raw_response().and_then(retry_after).unwrap_or_default();
        self.waited = own.max(asked.min(LONGEST_RETRY_AFTER)).min(left);
        tokio::time::sleep(self.waited).await;
        true
    }
}

/// Why an attempt failed that deserves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Time may help.
    Away,
    /// The answer cannot be right, or settings are wrong: time hardly helps.
    Wrong,
}

impl Cause {
    fn of<E>(error: &SdkError<E>) -> Option<Self>
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        const PASSING: [&str; 4] =
            ["InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout"];
        match error {
            _ if find::<TooLarge>(error).is_some() => None,
            _ if matches!(status_of(error), Some(408 | 429 | 500 | 502 | 503 | 504)) => {
                Some(Self::Away)
            }
            SdkError::ServiceError(_) => {
                error.code().is_some_and(|code| PASSING.contains(&code)).then_some(Self::Away)
            }
            SdkError::ResponseError(_) => Some(Self::Wrong),
            // One without a number was not sent.
            SdkError::DispatchFailure(_) => find::<Attempt>(error)
                .map(|attempt| if will_stay(attempt.cause()) { Self::Wrong } else { Self::Away }),
            SdkError::TimeoutError(_) => Some(Self::Away),
            _ => None,
        }
    }
}

/// Ends the attempts of the SDK's client once the store may have done one, or is waited for: whoever makes the request
/// looks before the next one. What is refused for its region or its credentials goes on at once.
#[derive(Debug)]
pub(super) struct Once(pub(super) bool);

impl Intercept for Once {
    fn name(&self) -> &'static str {
        "s3 once"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let status = context.response().map(|response| response.status().as_u16());
        let goes_on = matches!(status, Some(301 | 307 | 400..=407));
        if !self.0 || goes_on || !matches!(context.output_or_error(), Some(Err(_))) {
            return Ok(());
        }
        if let Some(config) = cfg.load::<RetryConfig>().cloned() {
            let number = cfg.load::<RequestAttempts>().map_or(1, RequestAttempts::attempts);
            cfg.interceptor_state().store_put(config.with_max_attempts(number));
        }
        Ok(())
    }
}
