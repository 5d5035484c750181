//! Makes connections: direct, through a proxy, with TLS.

use super::BoxError;
use super::network_policy::{NetworkPolicy, Resolver, Zone};
use super::write_timeout::WriteTimeout;
use crate::max_wait;
use futures_util::future::BoxFuture;
use http::header::PROXY_AUTHORIZATION;
use http::uri::Scheme;
use http::{Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
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
    proxy_of(&Matcher::from_env(), url).is_some()
}

/// Returns the proxy for requests to this URL. What is for this machine stays on it: to a proxy elsewhere its `localhost`
/// would be another one, and a secret for it would be sent in the clear.
fn proxy_of(proxies: &Matcher, url: &Uri) -> Option<Intercept> {
    let proxy = proxies.intercept(url)?;
    (!is_this_machine(url) || is_this_machine(proxy.uri())).then_some(proxy)
}

/// Returns whether the host of a URL is this machine by its name or its address.
fn is_this_machine(url: &Uri) -> bool {
    url.host().and_then(Zone::of_host) == Some(Zone::Loopback)
}

/// Returns whether nobody on the way can read what is sent to this URL: it uses TLS, or stays on this machine, which no
/// [proxy](Proxy) changes.
pub fn is_confidential(url: &Uri) -> bool {
    url.scheme() == Some(&Scheme::HTTPS) || is_this_machine(url)
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

type Tcp = HttpsConnector<HttpConnector<Resolver>>;

/// Makes connections, direct or through a proxy.
#[derive(Clone, Debug)]
pub struct Connector {
    direct: Tcp,
    /// Not limited by `reach`, because the user chose the proxy.
    to_proxy: Tcp,
    reach: NetworkPolicy,
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
        let proxies = match proxy {
            Proxy::Environment => Some(Arc::new(Matcher::from_env())),
            Proxy::None => None,
        };
        let direct = tcp(NetworkPolicy::default(), &tls);
        Self {
            to_proxy: direct.clone(),
            direct,
            reach: NetworkPolicy::default(),
            tls,
            proxies,
            timeout: connect,
            patience: max_wait(stall),
        }
    }

    /// Returns one that connects to nothing out of this reach.
    #[must_use]
    pub(super) fn within(&self, reach: NetworkPolicy) -> Self {
        Self { direct: tcp(reach, &self.tls), reach, ..self.clone() }
    }

    /// Checks that a URL's host is in reach, as far as the host itself tells: a proxy looks up names.
    ///
    /// # Errors
    /// If it is an address out of reach.
    pub(super) fn check(&self, url: &Uri) -> Result<(), BoxError> {
        Ok(self.reach.check(url.host().unwrap_or_default())?)
    }

    /// Returns the proxy for requests to this URL.
    fn proxy(&self, url: &Uri) -> Option<Intercept> {
        proxy_of(self.proxies.as_ref()?, url)
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

    async fn connect(mut self, to: Uri) -> Result<WriteTimeout, BoxError> {
        let Some(proxy) = self.proxy(&to) else {
            return Ok(WriteTimeout::new(self.direct.call(to).await?, false, self.patience));
        };
        if to.scheme() == Some(&Scheme::HTTP) {
            let stream = self.to_proxy.call(proxy.uri().clone()).await?;
            return Ok(WriteTimeout::new(stream, true, self.patience));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let stream = HttpsConnector::from((tunnel, self.tls)).call(to).await?;
        Ok(WriteTimeout::new(stream, false, self.patience))
    }
}

fn tcp(reach: NetworkPolicy, tls: &Arc<rustls::ClientConfig>) -> Tcp {
    let resolver = Resolver { all: GaiResolver::new(), reach };
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    HttpsConnector::from((tcp, Arc::clone(tls)))
}

impl Service<Uri> for Connector {
    type Response = WriteTimeout;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<WriteTimeout, BoxError>>;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn secrets_are_kept_by_tls_and_by_this_machine() {
        for text in [
            "https://h",
            "http://127.0.0.1:1",
            "http://127.1.2.3",
            "http://LOCALHOST/x",
            "http://bucket.localhost:1",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "http://localhost.",
            "http://bucket.localhost.:1",
            "http://127.0.0.1.:1",
            "http://0.0.0.0:9000",
            "http://[::]:9000",
        ] {
            assert!(is_confidential(&url(text)), "{text}");
        }
        for text in [
            "http://h",
            "http://localhost.example.com",
            "http://evillocalhost",
            "http://127.0.0.1.example.com",
            "http://[::ffff:10.0.0.1]",
            "http://169.254.169.254",
            // Another machine may translate these.
            "http://[64:ff9b::127.0.0.1]",
            "http://[2002:7f00:1::]",
            "http://0.1.2.3",
            "/x",
        ] {
            assert!(!is_confidential(&url(text)), "{text}");
        }
    }

    #[test]
    fn requests_for_this_machine_stay_on_it() {
        let proxy = |at: &str, to: &str| {
            let proxies = Matcher::builder().all(at).build();
            proxy_of(&proxies, &url(to)).is_some()
        };
        let here = [
            "http://localhost:9/x",
            "http://127.0.0.1:9",
            "http://[::1]:9",
            "https://localhost",
            "http://0.0.0.0:9000",
            "http://[::]:9000",
            "http://localhost.:9",
            "http://a.localhost:9",
        ];
        for to in here {
            assert!(!proxy("http://proxy.example.com:3128", to), "{to}");
            assert!(!proxy("http://169.254.169.254:3128", to), "{to}");
            assert!(!proxy("http://u:p@proxy.example.com", to), "{to}");
            // A program that shows what is sent.
            assert!(proxy("http://127.0.0.1:3128", to), "{to}");
            assert!(proxy("http://localhost:3128", to), "{to}");
        }
        for to in ["http://h", "https://h", "http://10.0.0.1", "http://localhost.example.com"] {
            assert!(proxy("http://proxy.example.com:3128", to), "{to}");
        }
    }
}
