//! Where clients other than the SDK send requests.

use aws_sdk_s3::config::endpoint::Endpoint;
use http::Uri;
use std::sync::Arc;
use tf_fs_object_store::http::{is_proxied, names_server};

/// Where clients other than the SDK send requests for a bucket's objects.
#[derive(Debug, PartialEq)]
pub(crate) struct Route {
    /// `http` or `https`, host and port, and in a path style URL the bucket; without `/` at the end.
    pub(crate) base: Arc<str>,
    pub(crate) https: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path before `/key`, as it is sent; empty or with `/` in front.
    pub(crate) path: String,
    pub(crate) signing_region: String,
    pub(crate) signing_name: String,
    /// Whether a plain SigV4 signature is enough. Otherwise only the SDK can make the request.
    pub(crate) is_plain: bool,
    /// Whether the environment sends requests for this host to a proxy.
    pub(crate) is_proxied: bool,
    pub(super) region: Arc<String>,
}

impl Route {
    /// Returns the `Host` header.
    pub(crate) fn authority(&self) -> String {
        match (self.https, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}
impl Route {
    /// Creates the route to an endpoint. `region` is that of the bucket, to sign for if `endpoint` names none.
    pub(crate) fn of(endpoint: &Endpoint, region: Arc<String>) -> Result<Self, String> {
        let base = endpoint.url().trim_end_matches('/').to_owned();
        let uri: Uri = endpoint.url().parse().map_err(|error| format!("{base}: {error}"))?;
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().filter(|_| names_server(&uri));
        let host =
            host.ok_or_else(|| format!("{base}: no host, or a port that is not a number"))?;
        let scheme = endpoint.auth_schemes().first();
        let property = |name: &str| scheme?.get(name)?.as_string();
        Ok(Self {
            https,
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            host: host.to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
            signing_region: property("signingRegion").unwrap_or(region.as_str()).to_owned(),
            signing_name: property("signingName").unwrap_or("s3").to_owned(),
            is_plain: scheme.is_none_or(|scheme| scheme.name() == "sigv4")
                && endpoint.headers().next().is_none(),
            is_proxied: is_proxied(&uri),
            base: base.into(),
            region,
        })
    }
}
