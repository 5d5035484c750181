//! The HTTP client under the SDK: the engine's, which ends requests that make no progress.
//!
//! The SDK's own limits do not fit. Its read timeout includes the sending of the body, so that a slow upload fails; its
//! protection against stalled streams does not cover the wait for a response; and its client hides its connections.

use super::whole::is_cut_off;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::HttpError as SmithyHttpError;
use http::{Request, Response};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::http::{Http, HttpBody, HttpError, HttpSettings, Proxy, Tls, endpoint};

/// The most bytes of a body that is kept in memory. The largest that a store sends on purpose has about 4 MiB: a
/// listing of 1,000 keys of 1,024 bytes, each of them encoded in three.
const LARGEST: usize = 32 << 20;

/// Creates a client. A request fails if it makes no progress for `stall`, or has no connection within `connect`.
pub(super) fn client(
    config: Arc<rustls::ClientConfig>,
    proxy: Proxy,
    connect: Duration,
    stall: Duration,
) -> SharedHttpClient {
    let settings = HttpSettings {
        tls: Tls::default(),
        proxy,
        connect_timeout: connect,
        stall_timeout: stall,
        // The SDK names itself.
        user_agent: "",
    };
    let connector = SharedHttpConnector::new(Engine(Http::with_config(config, settings)));
    let client =
        http_client_fn(move |_: &HttpConnectorSettings, _: &RuntimeComponents| connector.clone());
    SharedHttpClient::new(client)
}

/// The engine's client in the form that the SDK accepts.
#[derive(Clone, Debug)]
struct Engine(Http);

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let response = this.send(request).await;
            let response = response.and_then(|response| {
                let invalid = |error: SmithyHttpError| HttpError::Invalid(error.to_string());
                HttpResponse::try_from(response).map_err(invalid)
            });
            response.map_err(|failed| ConnectorError::io(Unanswered(failed).into()))
        })
    }
}

impl Engine {
    async fn send(&self, request: Request<SdkBody>) -> Result<Response<SdkBody>, HttpError> {
        let is_stream = request.uri().query().is_some_and(is_streamed);
        let endpoint = endpoint(request.uri()).into();
        let response = self.0.forward(request).await?;
        let is_success = response.status().is_success();
        if is_stream && is_success {
            return Ok(response.map(SdkBody::from_body_1_x));
        }
        let (head, body) = response.into_parts();
        let body = HttpBody::new(body, endpoint, self.0.settings().stall_timeout);
        let body = body.collect(LARGEST).await?;
        // Of an error the code matters, even if its document is cut off.
        if is_success && is_cut_off(&body) {
            return Err(HttpError::Invalid("it is cut off in the middle".to_owned()));
        }
        Ok(Response::from_parts(head, SdkBody::from(body)))
    }
}

/// Returns whether the body of the response is passed on as it arrives. The SDK keeps all others in memory.
fn is_streamed(query: &str) -> bool {
    query.split('&').any(|parameter| parameter == "x-id=GetObject")
}

/// A request got no whole response.
#[derive(Debug)]
pub(crate) struct Unanswered(pub(crate) HttpError);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unanswered {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_of_objects_are_streamed() {
        assert!(is_streamed("partNumber=1&x-id=GetObject"));
        for query in ["", "x-id=GetObjectAcl", "prefix=x-id%3DGetObject"] {
            assert!(!is_streamed(query), "{query}");
        }
    }
}
