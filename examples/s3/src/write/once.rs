//! Requests that the SDK's client makes once: the engine repeats them, because it has to look before the next attempt.

use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use aws_smithy_types::retry::RetryConfig;

/// Ends the attempts of the SDK's client, of which this is attempt `.0` for the engine. What is refused for its region or
/// its credentials goes on at once: it was not done.
#[derive(Debug)]
pub(super) struct Once(pub(super) u32);

impl Intercept for Once {
    fn name(&self) -> &'static str {
        "s3 once"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let own = cfg.load::<RequestAttempts>().map_or(1, RequestAttempts::attempts);
        let number = self.0.saturating_add(own - 1);
        context.request_mut().headers_mut().insert("amz-sdk-request", format!("attempt={number}"));
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let status = context.response().map(|response| response.status().as_u16());
        let goes_on = matches!(status, Some(301 | 307 | 400..=407));
        if goes_on || !matches!(context.output_or_error(), Some(Err(_))) {
            return Ok(());
        }
        if let Some(config) = cfg.load::<RetryConfig>().cloned() {
            let number = cfg.load::<RequestAttempts>().map_or(1, RequestAttempts::attempts);
            cfg.interceptor_state().store_put(config.with_max_attempts(number));
        }
        Ok(())
    }
}
