//! How long the SDK makes a failing request again: by time, whatever the number of its attempts.

use super::retry::{code_of, retry_after};
use crate::config::BucketSettings;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use std::sync::Arc;
use tf_fs_object_store::http::{causes, will_stay};
use tf_fs_object_store::{LONGEST_BACKOFF, LONGEST_RETRY_AFTER, Patience, WRONG_ANSWERS};
use tokio::time::Instant;

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
            None => (Patience::new(&self.settings.engine), now, 0),
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
