//! The HTTP client under the SDK.
//!
//! The SDK's own hides its connections. Here they are seen: one whose peer takes no more bytes would otherwise stay, with
//! the part of a file that it was sending, for as long as the peer likes, whatever became of the request.

use super::watch::{Watched, attempt_of};
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpInfo, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::http::{Connector, IDLE, Proxy};

/// How long after a request without an answer requests that are made again get connections of their own. Nothing that is
/// made again waits longer.
const DISTRUST: Duration = Duration::from_secs(30);

/// A client. A request that makes no progress for `stall` fails, and so does a connection that is not made in
/// `connect`.
pub(super) fn client(
    tls: Arc<rustls::ClientConfig>,
    proxy: Proxy,
    connect: Duration,
    stall: Duration,
) -> SharedHttpClient {
    let connector = Connector::new(tls, proxy, connect, stall);
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    let pooled = builder.build(connector.clone());
    let fresh = builder.pool_max_idle_per_host(0).build(connector.clone());
    let connector =
        SharedHttpConnector::new(Hyper { pooled, fresh, connector, unanswered: Arc::default() });
    let client =
        http_client_fn(move |_: &HttpConnectorSettings, _: &RuntimeComponents| connector.clone());
    SharedHttpClient::new(Watched::new(client, stall))
}

/// hyper's client as the SDK wants it.
#[derive(Clone, Debug)]
struct Hyper {
    pooled: Client<Connector, SdkBody>,
    /// Without a pool, for requests that got no answer before: if one of the pooled connections was dead, the others may be.
    fresh: Client<Connector, SdkBody>,
    /// When a request last got no answer.
    unanswered: Arc<Mutex<Option<Instant>>>,
    connector: Connector,
}

impl Hyper {
    fn unanswered(&self) -> MutexGuard<'_, Option<Instant>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn distrusts_the_pool(&self) -> bool {
        self.unanswered().is_some_and(|at| at.elapsed() < DISTRUST)
    }
}

impl HttpConnector for Hyper {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let is_repeated = attempt_of(&request).is_some_and(|attempt| attempt > 1);
        let mut request: Request<SdkBody> = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        if let Err(error) = self.connector.prepare(&mut request) {
            return HttpConnectorFuture::ready(Err(ConnectorError::user(error)));
        }
        // hyper sends none for a body that is empty, and there are stores that want one (411).
        if matches!(*request.method(), Method::PUT | Method::POST)
            && request.body().content_length() == Some(0)
        {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let captured = capture_connection(&mut request);
        if let Some(connection) = request.extensions().get::<CaptureSmithyConnection>() {
            connection.set_connection_retriever(move || described(captured.clone()));
        }
        let client =
            if is_repeated && self.distrusts_the_pool() { &self.fresh } else { &self.pooled };
        let response = client.request(request);
        let this = self.clone();
        HttpConnectorFuture::new(async move {
            let response = response.await.map_err(|error| {
                *this.unanswered() = Some(Instant::now());
                ConnectorError::io(error.into())
            })?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The connection of a request, for the SDK: it uses one that brought a failure no more.
fn described(captured: CaptureConnection) -> Option<ConnectionMetadata> {
    let mut builder = ConnectionMetadata::builder();
    {
        let connected = captured.connection_metadata();
        let connected = connected.as_ref()?;
        let mut extras = http::Extensions::new();
        connected.get_extras(&mut extras);
        let info = extras.get::<HttpInfo>();
        builder.set_proxied(Some(connected.is_proxied()));
        builder.set_local_addr(info.map(HttpInfo::local_addr));
        builder.set_remote_addr(info.map(HttpInfo::remote_addr));
    }
    let poison = move || {
        if let Some(connected) = &*captured.connection_metadata() {
            connected.poison();
        }
    };
    Some(builder.poison_fn(poison).build())
}
