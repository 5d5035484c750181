//! A client, its requests and responses.

use super::{
    Chunks, Connector, Failed, HeaderMap, HttpBody, IDLE, Proxy, Refusal, Request, Tls, Uri,
    header, number, retry_after,
};
use crate::longest_patience;
use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// What of a refusal's body is read.
const REFUSAL: usize = 4 << 10;

/// How requests are made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpSettings {
    /// Which certificates are trusted.
    pub tls: Tls,
    /// Whether requests go to the proxies of the environment.
    pub proxy: Proxy,
    /// How long it may take to make a connection.
    pub connect_timeout: Duration,
    /// How long a request may make no progress.
    pub stall_timeout: Duration,
    /// What requests say of the program that makes them.
    pub user_agent: &'static str,
}

/// A client, with the connections that it keeps. It belongs to the process that made it; a forked child makes its own.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client<Connector, Chunks>,
    connector: Connector,
    settings: Arc<HttpSettings>,
}

impl Http {
    /// A client. It reads the certificates that are trusted, and makes no connection yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for certificates that cannot be used.
    pub fn new(settings: HttpSettings) -> Result<Self> {
        let tls = Arc::new(settings.tls.client_config()?);
        let (connect, stall) = (settings.connect_timeout, settings.stall_timeout);
        let connector = Connector::new(tls, settings.proxy, connect, stall);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        let client = builder.build(connector.clone());
        Ok(Self { client, connector, settings: Arc::new(settings) })
    }

    /// Sends a request, and returns at the head of the response, whatever its status. Unless the request says something
    /// else, it asks for bytes that nobody has compressed.
    ///
    /// # Errors
    /// If no response comes.
    pub async fn send(&self, mut request: Request<Chunks>) -> Result<Response, Failed> {
        let endpoint: Arc<str> = endpoint(request.uri()).into();
        let failed = |error| Failed::Transport(endpoint.to_string(), error);
        self.connector.prepare(&mut request).map_err(failed)?;
        let agent = header::HeaderValue::from_static(self.settings.user_agent);
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(agent);
        let identity = header::HeaderValue::from_static("identity");
        headers.entry(header::ACCEPT_ENCODING).or_insert(identity);
        let sent = Arc::clone(&request.body().sent);
        let mut response = std::pin::pin!(self.client.request(request));
        let stall = self.settings.stall_timeout;
        let mut before = 0;
        loop {
            // What was sent last may be in the system's buffers for a while, where its progress is not seen.
            let patience = if before == 0 { stall } else { longest_patience(stall) };
            match tokio::time::timeout(patience, response.as_mut()).await {
                Ok(Ok(response)) => return Response::new(response, endpoint),
                Ok(Err(error)) => return Err(failed(error.into())),
                Err(_) if sent.load(Ordering::Relaxed) > before => {
                    before = sent.load(Ordering::Relaxed);
                }
                Err(_) => return Err(Failed::Stalled(endpoint.to_string(), stall)),
            }
        }
    }

    /// The settings that it was made with.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }
}

/// Scheme, host and port of a URL, for errors: nothing of it is secret.
fn endpoint(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", url.scheme_str().unwrap_or_default())
}

/// The head of a response, and its body to come.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// `Content-Length`, if it has one.
    pub content_length: Option<u64>,
    incoming: Incoming,
    endpoint: Arc<str>,
}

impl Response {
    fn new(response: ::http::Response<Incoming>, endpoint: Arc<str>) -> Result<Self, Failed> {
        let (parts, incoming) = response.into_parts();
        let mut new = Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            content_length: None,
            incoming,
            endpoint,
        };
        if let Some(length) = new.header("content-length") {
            let wrong = || Failed::Invalid(format!("Content-Length `{}`", length.escape_debug()));
            new.content_length = Some(number(length).ok_or_else(wrong)?);
        }
        Ok(new)
    }

    /// The value of a header that is there once, without space around it.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?;
        if all.any(|other| other != first) {
            return None;
        }
        first.to_str().ok().map(str::trim)
    }

    /// Scheme, host and port of the request's URL, for errors.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The body. If it has to have `len` bytes, any other number is a failure.
    pub fn into_body(self, len: Option<u64>) -> HttpBody {
        HttpBody::new(self.incoming, len, self.endpoint)
    }

    /// The whole body.
    ///
    /// # Errors
    /// If it breaks off, makes no progress for `stall`, or has more than `most` bytes.
    pub async fn collect(self, most: usize, stall: Duration) -> Result<Bytes, Failed> {
        let (endpoint, len) = (Arc::clone(&self.endpoint), self.content_length);
        let mut body = self.into_body(len);
        let mut bytes = BytesMut::new();
        loop {
            let chunk = tokio::time::timeout(stall, body.chunk()).await;
            let chunk = chunk.map_err(|_| Failed::Stalled(endpoint.to_string(), stall))?;
            let Some(chunk) = chunk? else { return Ok(bytes.freeze()) };
            if bytes.len() + chunk.len() > most {
                return Err(Failed::Invalid(format!("it has more than {most} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
    }

    /// What the server says with a status that is not a success. As much of the body as arrives in `stall`, at most 4 KiB,
    /// is passed to `explain`, which may add to it.
    pub async fn refusal(
        self,
        stall: Duration,
        explain: impl FnOnce(&mut Refusal, &[u8]),
    ) -> Failed {
        let mut refusal = Refusal {
            status: self.status,
            endpoint: self.endpoint.to_string(),
            retry_after: self.header("retry-after").and_then(retry_after),
            ..Refusal::default()
        };
        let mut bytes = Vec::new();
        let is_empty = self.content_length == Some(0);
        let mut body = self.into_body(None);
        let receive = async {
            while !is_empty && bytes.len() < REFUSAL {
                let Ok(Some(chunk)) = body.chunk().await else { break };
                bytes.extend_from_slice(&chunk[..chunk.len().min(REFUSAL - bytes.len())]);
            }
        };
        // As much as has come by then has to do.
        let _ = tokio::time::timeout(stall, receive).await;
        explain(&mut refusal, &bytes);
        Failed::Refused(Box::new(refusal))
    }
}
