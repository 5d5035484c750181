//! HTTP clients for the SDK.

use super::tls::{Tls, roots};
use super::watch::Watched;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Whether requests go to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// Never: for what only this machine can reach.
    None,
}

/// Whether the environment sends requests for this URL to a proxy.
pub(super) fn is_proxied(url: &http::Uri) -> bool {
    Matcher::from_env().intercept(url).is_some()
}

/// A client. A request that makes no progress for `stall` fails.
///
/// # Errors
/// `INVALID_ARGUMENT` if certificates cannot be read.
pub(super) fn client(
    tls: &Tls,
    proxy: Proxy,
    connect: Duration,
    stall: Duration,
) -> Result<SharedHttpClient> {
    let client = if tls.verify { verified(tls, proxy)? } else { unverified(tls, connect)? };
    Ok(SharedHttpClient::new(Watched::new(client, stall)))
}

fn verified(tls: &Tls, proxy: Proxy) -> Result<SharedHttpClient> {
    let mut trusted = TrustStore::default();
    if tls.has_own_certificates() {
        for pem in roots(tls)?.own {
            trusted.add_pem_certificate(pem);
        }
    }
    let context = TlsContext::builder()
        .with_trust_store(trusted)
        .build()
        .map_err(|error| Error::internal("cannot set up TLS").with_source(error))?;
    let proxy = match proxy {
        Proxy::Environment => ProxyConfig::from_env(),
        Proxy::None => ProxyConfig::disabled(),
    };
    let connector = move |settings: Option<&HttpConnectorSettings>| {
        let mut builder = aws_smithy_http_client::Connector::builder()
            .proxy_config(proxy.clone())
            .pool_idle_timeout(IDLE);
        builder.set_connector_settings(settings.cloned());
        builder
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .tls_context(context.clone())
            .build()
    };
    // The first one reads the system's certificates, once for the process. Now, while TensorFlow's thread waits: if a
    // thread in the background did it when that thread forks, the child would wait for it for ever.
    drop(connector(None));
    Ok(aws_smithy_http_client::Builder::new()
        .build_with_connector_fn(move |settings, _| connector(settings)))
}

/// How long a connection without requests is kept. Stores close it after a minute or less.
const IDLE: Duration = Duration::from_secs(20);

/// A client that accepts any certificate. The SDK's own cannot.
#[derive(Clone, Debug)]
struct Unverified(Client<HttpsConnector<Tcp>, SdkBody>);

fn unverified(tls: &Tls, connect: Duration) -> Result<SharedHttpClient> {
    let mut tcp = Tcp::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect));
    let mut config = super::tls::client_config(tls)?;
    // The builder sets its own.
    config.alpn_protocols.clear();
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(https);
    let connector = SharedHttpConnector::new(Unverified(client));
    Ok(http_client_fn(move |_: &HttpConnectorSettings, _: &RuntimeComponents| connector.clone()))
}

impl HttpConnector for Unverified {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        let response = self.0.request(request);
        HttpConnectorFuture::new(async move {
            let response = response.await.map_err(|error| ConnectorError::io(error.into()))?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}
