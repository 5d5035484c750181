//! The HTTP client under the SDK.
//!
//! The SDK's own hides its connections. Here they are seen: one whose peer takes no more bytes would otherwise stay, with
//! the part of a file that it was sending, for as long as the peer likes, whatever became of the request.

mod guard;

use super::watch::{Watched, attempt};
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use futures_util::future::BoxFuture;
use guard::Guarded;
use http::header::{CONTENT_LENGTH, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{
    CaptureConnection, HttpConnector as Tcp, HttpInfo, capture_connection,
};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tf_fs_object_store::longest_patience;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whether requests go to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// Never: for what only this machine can reach.
    None,
}

/// Whether the environment sends requests for this URL to a proxy.
pub(super) fn is_proxied(url: &Uri) -> bool {
    Matcher::from_env().intercept(url).is_some()
}

/// How long a connection without requests is kept: Amazon S3 closes it after some 20 s, and one that the store has
/// closed costs a round trip.
pub(crate) const IDLE: Duration = Duration::from_secs(15);

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
    let mut tcp = Tcp::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let proxies = match proxy {
        Proxy::Environment => Some(Arc::new(Matcher::from_env())),
        Proxy::None => None,
    };
    let connector = Connector {
        direct: HttpsConnector::from((tcp, Arc::clone(&tls))),
        tls,
        proxies: proxies.clone(),
        timeout: connect,
        patience: longest_patience(stall),
    };
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    let pooled = builder.build(connector.clone());
    let fresh = builder.pool_max_idle_per_host(0).build(connector);
    let connector =
        SharedHttpConnector::new(Hyper { pooled, fresh, proxies, unanswered: Arc::default() });
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
    proxies: Option<Arc<Matcher>>,
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
        let is_repeated = attempt(&request).is_some_and(|attempt| attempt > 1);
        let mut request: Request<SdkBody> = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        if let Some(proxy) = intercept(&self.proxies, request.uri())
            && let Some(error) = unusable(&proxy)
        {
            return HttpConnectorFuture::ready(Err(ConnectorError::user(error)));
        }
        // A request in a tunnel is no business of the proxy's.
        if request.uri().scheme() == Some(&Scheme::HTTP)
            && let Some(proxy) = intercept(&self.proxies, request.uri())
            && let Some(authorization) = proxy.basic_auth()
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
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

/// What is wrong with a proxy of a kind that there is no support for.
fn unusable(proxy: &Intercept) -> Option<BoxError> {
    let scheme = proxy.uri().scheme_str().unwrap_or_default();
    (!matches!(scheme, "http" | "https")).then(|| {
        let text = "proxies with this scheme are not supported; set HTTPS_PROXY or HTTP_PROXY to one with http:// or \
                    https://, or name the endpoint in NO_PROXY";
        format!("{scheme}://: {text}").into()
    })
}

fn intercept(proxies: &Option<Arc<Matcher>>, url: &Uri) -> Option<Intercept> {
    proxies.as_ref()?.intercept(url)
}

/// Makes connections, straight or through a proxy.
#[derive(Clone, Debug)]
struct Connector {
    direct: HttpsConnector<Tcp>,
    tls: Arc<rustls::ClientConfig>,
    proxies: Option<Arc<Matcher>>,
    timeout: Duration,
    /// After so long without a byte taken a connection is broken.
    patience: Duration,
}

impl Connector {
    async fn connect(mut self, to: Uri) -> Result<Guarded, BoxError> {
        let Some(proxy) = intercept(&self.proxies, &to) else {
            return Ok(Guarded::new(self.direct.call(to).await?, false, self.patience));
        };
        if to.scheme() == Some(&Scheme::HTTP) {
            let stream = self.direct.call(proxy.uri().clone()).await?;
            return Ok(Guarded::new(stream, true, self.patience));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let stream = HttpsConnector::from((tunnel, self.tls)).call(to).await?;
        Ok(Guarded::new(stream, false, self.patience))
    }
}

impl Service<Uri> for Connector {
    type Response = Guarded;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Guarded, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connector, timeout) = (self.clone(), self.timeout);
        Box::pin(async move {
            let connected = tokio::time::timeout(timeout, connector.connect(to)).await;
            connected.unwrap_or_else(|_| {
                let kind = io::ErrorKind::TimedOut;
                Err(io::Error::new(kind, format!("no connection in {timeout:?}")).into())
            })
        })
    }
}
