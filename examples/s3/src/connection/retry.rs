//! Which failures that the SDK would give up on deserve another try.

use super::credentials::Cache;
use super::region::{Located, REGION_HEADER, asked_for};
use super::watch::TooLarge;
use super::whole::is_cut_off;
use crate::failure::find;
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::retries::classifiers::{
    ClassifyRetry, RetryAction, RetryClassifierPriority,
};
use aws_smithy_types::retry::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Tries again, at once, what was refused for its region or for credentials that have expired.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) located: Arc<Located>,
    pub(super) credentials: Arc<Cache>,
}

/// Codes that say that newer credentials may help.
pub(crate) fn is_about_old_credentials(code: &str) -> bool {
    matches!(
        code,
        "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidToken"
            | "TokenRefreshRequired"
            | "InvalidAccessKeyId"
    )
}

impl ClassifyRetry for Refused {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let Some(response) = context.response() else { return RetryAction::NoActionIndicated };
        if let Some(Err(error)) = context.output_or_error()
            && find::<TooLarge>(error).is_some()
        {
            return RetryAction::RetryForbidden;
        }
        let status = response.status().as_u16();
        let body = response.body().bytes().unwrap_or_default();
        if response.status().is_success() {
            return match is_cut_off(body) {
                true => RetryAction::transient_error(),
                false => RetryAction::NoActionIndicated,
            };
        }
        let again = match asked_for(status, response.headers().get(REGION_HEADER), body) {
            Some(region) => self.located.correct(&region),
            // As a proxy says it whose store is being started.
            None if matches!(status, 429 | 503)
                && let Some(delay) = retry_after(response) =>
            {
                let kind = ErrorKind::ThrottlingError;
                return RetryAction::retryable_error_with_explicit_delay(kind, delay);
            }
            // The SDK knows them by Amazon's codes only.
            None if status == 429 => return RetryAction::throttling_error(),
            None if status == 408 => return RetryAction::transient_error(),
            None => code_of(body)
                .is_some_and(|code| is_about_old_credentials(&code) && self.credentials.expire()),
        };
        if again {
            let kind = ErrorKind::TransientError;
            RetryAction::retryable_error_with_explicit_delay(kind, Duration::ZERO)
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "region and credentials"
    }

    fn priority(&self) -> RetryClassifierPriority {
        RetryClassifierPriority::run_after(RetryClassifierPriority::transient_error_classifier())
    }
}

/// How long the store asks to be left alone. Nothing is no wish: attempts would follow at once.
pub(crate) fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let seconds: u64 = response.headers().get("retry-after")?.trim().parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// The code of S3's error document.
pub(crate) fn code_of(body: &[u8]) -> Option<String> {
    let body = std::str::from_utf8(body.get(..body.len().min(4096))?).ok()?;
    let (_, rest) = body.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code.to_owned())
}
