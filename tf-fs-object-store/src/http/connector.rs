//! Makes connections: direct, through a proxy, with TLS.

use super::BoxError;
use super::guard::Guarded;
use crate::longest_patience;
use futures_util::future::BoxFuture;
use http::header::PROXY_AUTHORIZATION;
use http::uri::Scheme;
use http::{Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// Whether requests go to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// As in `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    Environment,
    /// Never: for what only this machine can reach.
    None,
}

/// Returns whether the environment sends requests for this URL to a proxy.
pub fn is_proxied(url: &Uri) -> bool {
    Matcher::from_env().intercept(url).is_some()
}

/// How long an idle connection is kept: many servers close it after some 20 s, and a closed one costs a round trip.
pub const IDLE: Duration = Duration::from_secs(15);

/// Returns what is wrong with a proxy whose scheme is not supported.
fn unusable(proxy: &Intercept) -> Option<BoxError> {
    let scheme = proxy.uri().scheme_str().unwrap_or_default();
    (!matches!(scheme, "http" | "https")).then(|| {
        let text = "proxies with this scheme are not supported; set HTTPS_PROXY or HTTP_PROXY to one with http:// or \
                    https://, or name the endpoint in NO_PROXY";
        format!("{scheme}://: {text}").into()
    })
}

/// Makes connections, direct or through a proxy.
#[derive(Clone, Debug)]
pub struct Connector {
    direct: HttpsConnector<Tcp>,
    tls: Arc<rustls::ClientConfig>,
    proxies: Option<Arc<Matcher>>,
    timeout: Duration,
    /// How long the peer of a connection may accept no byte.
    patience: Duration,
}

impl Connector {
    /// Creates a connector. Its connections fail if they are not made in `connect`, or if their peer accepts no byte of
    /// a request for `stall` and the time for bytes that the system may buffer.
    pub fn new(
        tls: Arc<rustls::ClientConfig>,
        proxy: Proxy,
        connect: Duration,
        stall: Duration,
    ) -> Self {
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let proxies = match proxy {
            Proxy::Environment => Some(Arc::new(Matcher::from_env())),
            Proxy::None => None,
        };
        Self {
            direct: HttpsConnector::from((tcp, Arc::clone(&tls))),
            tls,
            proxies,
            timeout: connect,
            patience: longest_patience(stall),
        }
    }

    /// Returns the proxy for requests to this URL.
    fn proxy(&self, url: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.intercept(url)
    }

    /// Returns whether requests to this URL bypass all proxies.
    pub(super) fn is_direct(&self, url: &Uri) -> bool {
        self.proxy(url).is_none()
    }

    /// Returns the TLS settings of connections.
    pub(super) fn tls(&self) -> &Arc<rustls::ClientConfig> {
        &self.tls
    }

    /// Adds the headers of a request that are for a proxy, before it is sent.
    ///
    /// # Errors
    /// If the proxy is of a kind that is not supported.
    pub fn prepare<B>(&self, request: &mut Request<B>) -> Result<(), BoxError> {
        let Some(proxy) = self.proxy(request.uri()) else { return Ok(()) };
        if let Some(error) = unusable(&proxy) {
            return Err(error);
        }
        // A request in a tunnel does not concern the proxy.
        if request.uri().scheme() == Some(&Scheme::HTTP)
            && let Some(authorization) = proxy.basic_auth()
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(())
    }

    async fn connect(mut self, to: Uri) -> Result<Guarded, BoxError> {
        let Some(proxy) = self.proxy(&to) else {
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
