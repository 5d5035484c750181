//! A client, its requests and responses.

use super::pool::{Pool, PoolKey};
use super::raw_get::RawGet;
use super::response::Response;
use super::upload_body::UploadBody;
use super::{
    BoxError, Chunks, Connector, HttpError, IDLE, Method, NetworkPolicy, Proxy, Request, Tls, Uri,
    header,
};
use crate::attempt;
use ::http::uri::PathAndQuery;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_plugin::prelude::*;

/// How long after a request without an answer requests that are made again get connections of their own. Nothing that is
/// made again waits longer.
const DISTRUST: Duration = Duration::from_secs(30);
/// The most headers of a response.
const HEADERS: usize = 512;

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
    /// The user agent of requests.
    pub user_agent: &'static str,
}

/// A client, with the connections that it keeps. It belongs to the process that made it; a forked child makes its own.
#[derive(Clone, Debug)]
pub struct Http {
    pooled: Client<Connector, UploadBody>,
    /// Without a pool, for requests that got no answer before: if one of the pooled connections was dead, the others may be.
    fresh: Client<Connector, UploadBody>,
    /// When a request last got no answer.
    unanswered: Arc<Mutex<Option<Instant>>>,
    connector: Connector,
    settings: Arc<HttpSettings>,
    pool: Arc<Pool>,
    /// Whether what a server sends goes from the socket straight into its destination, by endpoint: it does once the server
    /// has sent a range and its length.
    ranged: Arc<Mutex<HashMap<Arc<str>, bool>>>,
    /// The same of servers that have sent nothing yet.
    assumes_ranges: bool,
}

impl Http {
    /// A client. It reads the certificates that are trusted, and makes no connection yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for certificates that cannot be used.
    pub fn new(settings: HttpSettings) -> Result<Self> {
        let tls = Arc::new(settings.tls.client_config()?);
        Ok(Self::with_config(tls, settings))
    }

    /// The same, where the [certificates](HttpSettings::tls) have been read.
    pub fn with_config(tls: Arc<rustls::ClientConfig>, settings: HttpSettings) -> Self {
        let (connect, stall) = (settings.connect_timeout, settings.stall_timeout);
        let connector = Connector::new(tls, settings.proxy, connect, stall);
        Self::with_connector(connector, Arc::new(settings), Arc::default())
    }

    /// Returns one with connections of its own, all of them to addresses within this reach. An address that a proxy
    /// looks up is not checked.
    #[must_use]
    pub fn within(&self, reach: NetworkPolicy) -> Self {
        let (connector, pool) = (self.connector.within(reach), Pool::within(reach));
        Self::with_connector(connector, Arc::clone(&self.settings), Arc::new(pool))
    }

    fn with_connector(connector: Connector, settings: Arc<HttpSettings>, pool: Arc<Pool>) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(HEADERS)
            .http1_allow_obsolete_multiline_headers_in_responses(true);
        Self {
            pooled: builder.build(connector.clone()),
            fresh: builder.pool_max_idle_per_host(0).build(connector.clone()),
            unanswered: Arc::default(),
            connector,
            settings,
            pool,
            ranged: Arc::default(),
            assumes_ranges: false,
        }
    }

    /// Returns one that expects ranges of all servers: the first one, too, goes straight into its destination.
    #[must_use]
    pub fn expecting_ranges(self) -> Self {
        Self { assumes_ranges: true, ..self }
    }

    /// Sends a request, and returns at the head of the response, whatever its status. By default it accepts only
    /// uncompressed bytes.
    ///
    /// # Errors
    /// If no response comes.
    pub async fn send(&self, mut request: Request<Chunks>) -> Result<Response, HttpError> {
        let endpoint: Arc<str> = endpoint(request.uri()).into();
        let agent = header::HeaderValue::from_static(self.settings.user_agent);
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(agent);
        let identity = header::HeaderValue::from_static("identity");
        headers.entry(header::ACCEPT_ENCODING).or_insert(identity);
        let is_direct = self.connector.is_direct(request.uri());
        let is_range = is_range(&request) && is_direct;
        let sends_ranges =
            is_range && *self.ranged().get(&endpoint).unwrap_or(&self.assumes_ranges);
        if sends_ranges {
            let response = self.get_range(&request, &endpoint).await?;
            // Of a refusal only the beginning is read.
            if !response.is_encoded() || !(200..300).contains(&response.status) {
                return Ok(response);
            }
            // hyper knows where such a body ends.
            self.ranged().insert(Arc::clone(&endpoint), false);
        }
        let again = is_range.then(|| request.clone());
        let url = request.uri().clone();
        let mut response = match (self.forward(request).await, again) {
            // Our own parser accepts more than hyper's.
            (Err(HttpError::Transport(_, error)), Some(again)) if is_not_http(&*error) => {
                let response = self.get_range(&again, &endpoint).await?;
                if response.is_encoded() {
                    return Err(HttpError::Transport(endpoint.to_string(), error));
                }
                response
            }
            (response, _) => {
                Response::new(response?, Arc::clone(&endpoint), url, self.settings.stall_timeout)?
            }
        };
        if !is_direct {
            response.peer = None;
        }
        if is_range && response.status == 206 && response.content_length.is_some() {
            self.ranged().insert(endpoint, true);
        }
        Ok(response)
    }

    /// As [`send`](Self::send), for a body of any kind, such as a file.
    ///
    /// # Errors
    /// If no response comes, or nothing moves for [`HttpSettings::stall_timeout`].
    pub async fn send_body<B>(&self, mut request: Request<B>) -> Result<Response, HttpError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let endpoint: Arc<str> = endpoint(request.uri()).into();
        let url = request.uri().clone();
        let agent = header::HeaderValue::from_static(self.settings.user_agent);
        request.headers_mut().entry(header::USER_AGENT).or_insert(agent);
        let response = self.forward(request).await?;
        Response::new(response, endpoint, url, self.settings.stall_timeout)
    }

    /// Sends a request as it is, for clients that write their requests themselves, and returns at the head of the
    /// response, whatever its status.
    ///
    /// # Errors
    /// If no response comes, or nothing moves for [`HttpSettings::stall_timeout`].
    pub async fn forward<B>(
        &self,
        mut request: Request<B>,
    ) -> Result<::http::Response<Incoming>, HttpError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let endpoint = endpoint(request.uri());
        let failed = |error| HttpError::Transport(endpoint.clone(), error);
        let unusable =
            |error| HttpError::Other(Error::unavailable(format_args!("{endpoint}: {error}")));
        self.connector.check(request.uri()).map_err(failed)?;
        self.connector.prepare(&mut request).map_err(unusable)?;
        // hyper sends none for a body that is empty, and there are servers that want one (411).
        if matches!(*request.method(), Method::PUT | Method::POST)
            && request.body().size_hint().exact() == Some(0)
        {
            let zero = header::HeaderValue::from_static("0");
            request.headers_mut().insert(header::CONTENT_LENGTH, zero);
        }
        let (parts, body) = request.into_parts();
        let (body, progress) = UploadBody::new(body);
        let mut request = Request::from_parts(parts, body);
        let connection = capture_connection(&mut request);
        let is_repeated = attempt().number > 1 && self.distrusts_the_pool();
        let client = if is_repeated { &self.fresh } else { &self.pooled };
        let stall = self.settings.stall_timeout;
        let response = tokio::select! {
            biased;
            response = client.request(request) => response.map_err(|error| failed(error.into())),
            () = progress.stalled(stall) => Err(HttpError::Stalled(endpoint.clone(), stall)),
        };
        match &response {
            Err(_) => *self.unanswered() = Some(Instant::now()),
            // Another connection may lead to a server that is well.
            Ok(response) if matches!(response.status().as_u16(), 500 | 502..=504) => {
                if let Some(connected) = &*connection.connection_metadata() {
                    connected.poison();
                }
            }
            Ok(_) => {}
        }
        response
    }

    fn unanswered(&self) -> MutexGuard<'_, Option<Instant>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn distrusts_the_pool(&self) -> bool {
        self.unanswered().is_some_and(|at| at.elapsed() < DISTRUST)
    }

    fn ranged(&self) -> MutexGuard<'_, HashMap<Arc<str>, bool>> {
        self.ranged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a GET over a connection of our own.
    async fn get_range(
        &self,
        request: &Request<Chunks>,
        endpoint: &Arc<str>,
    ) -> Result<Response, HttpError> {
        let url = request.uri();
        let tls = (url.scheme_str() == Some("https")).then(|| Arc::clone(self.connector.tls()));
        let port = url.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let get = RawGet {
            pool_key: &PoolKey::new(url.host().unwrap_or_default(), port, tls),
            endpoint,
            connect_timeout: self.settings.connect_timeout,
            stall_timeout: self.settings.stall_timeout,
            request: &written(request),
        };
        let mut response = get.send(&self.pool).await?;
        response.url = url.clone();
        Ok(response)
    }

    /// The settings that it was made with.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }
}

/// Returns whether hyper could not parse the head of a response.
fn is_not_http(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
}

/// Whether a request is a GET of a range of bytes, as HTTP or Azure writes it.
fn is_range(request: &Request<Chunks>) -> bool {
    let headers = request.headers();
    let has_range = headers.contains_key(header::RANGE) || headers.contains_key("x-ms-range");
    request.method() == Method::GET && request.body().is_empty() && has_range
}

/// A request as it goes over the wire. Its types hold nothing that would be two headers.
fn written(request: &Request<Chunks>) -> Vec<u8> {
    let url = request.uri();
    let target = url.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut text = format!("GET {target} HTTP/1.1\r\n").into_bytes();
    if !request.headers().contains_key(header::HOST) {
        let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
        let port = url.port_u16().filter(|&port| port != usual);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("host: {}{port}\r\n", url.host().unwrap_or_default());
        text.extend_from_slice(host.as_bytes());
    }
    for (name, value) in request.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Scheme, host and port of a URL, for errors: nothing of it is secret.
pub fn endpoint(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", url.scheme_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_wait;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The connection that each request came over.
    type Log = Arc<Mutex<Vec<usize>>>;

    /// A server of ten bytes, which writes them in chunks if it is told to. Its threads end with the process.
    fn serve(in_chunks: &Arc<AtomicBool>) -> (String, Log) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a//../b?c", listener.local_addr().unwrap());
        let log = Log::default();
        let (in_chunks, seen) = (Arc::clone(in_chunks), Arc::clone(&log));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (in_chunks, seen) = (Arc::clone(&in_chunks), Arc::clone(&seen));
                std::thread::spawn(move || {
                    let mut writer = stream.try_clone().unwrap();
                    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                    while let Some(first) = lines.next() {
                        assert_eq!(first, "GET /a//../b?c HTTP/1.1");
                        let head: Vec<_> =
                            lines.by_ref().take_while(|line| !line.is_empty()).collect();
                        assert!(head.contains(&"range: bytes=0-9".to_owned()), "{head:?}");
                        assert_eq!(head.iter().filter(|line| line.starts_with("host:")).count(), 1);
                        seen.lock().unwrap().push(number);
                        let body = match in_chunks.load(Ordering::Relaxed) {
                            true => {
                                "transfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n"
                            }
                            false => "content-length: 10\r\n\r\n0123456789",
                        };
                        let answer = format!(
                            "HTTP/1.1 206 OK\r\ncontent-range: bytes 0-9/10\r\netag: \"e\"\r\n{body}"
                        );
                        if writer.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (url, log)
    }

    fn client(stall: Duration) -> Http {
        let settings = HttpSettings {
            tls: Tls::default(),
            proxy: Proxy::None,
            connect_timeout: Duration::from_secs(20),
            stall_timeout: stall,
            user_agent: "test",
        };
        Http::new(settings).unwrap()
    }

    /// Sends 64 MiB in one chunk to a server that reads a MiB in `pause`.
    async fn upload(http: &Http, pause: Duration) -> Result<Response, HttpError> {
        const LEN: usize = 64 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut read, mut piece) = (0, vec![0; 1 << 20]);
            while read < LEN {
                std::thread::sleep(pause);
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => return,
                    Ok(n) => read += n,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        });
        let mut request = Request::new(Chunks::new([vec![0; LEN].into()]));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = url.parse().unwrap();
        http.send(request).await
    }

    #[tokio::test]
    async fn a_slow_upload_of_one_chunk_is_not_ended_and_one_that_stands_still_is() {
        let stall = Duration::from_millis(250);
        let (http, start) = (client(stall), Instant::now());
        let slow = async {
            assert_eq!(upload(&http, Duration::from_millis(25)).await.unwrap().status, 200);
            assert!(start.elapsed() > max_wait(stall), "not slow: {:?}", start.elapsed());
        };
        let (failed, ()) = tokio::join!(upload(&http, Duration::from_secs(3600)), slow);
        assert!(matches!(failed, Err(HttpError::Stalled(..))), "{failed:?}");
    }

    #[tokio::test]
    async fn a_server_that_sends_ranges_is_read_over_connections_of_our_own() {
        let in_chunks = Arc::default();
        let (url, log) = serve(&in_chunks);
        let http = client(Duration::from_secs(20));
        for (chunks, connections) in
            [(false, &[0][..]), (false, &[1]), (false, &[1]), (true, &[1, 0]), (true, &[0])]
        {
            in_chunks.store(chunks, Ordering::Relaxed);
            log.lock().unwrap().clear();
            let mut request = Request::new(Chunks::default());
            *request.uri_mut() = url.parse().unwrap();
            let range = header::HeaderValue::from_static("bytes=0-9");
            request.headers_mut().insert(header::RANGE, range);
            let response = http.send(request).await.unwrap();
            assert_eq!((response.status, response.header("etag")), (206, Some("\"e\"")));
            let body = response.collect(100).await.unwrap();
            assert_eq!(&body[..], b"0123456789");
            assert_eq!(*log.lock().unwrap(), connections, "{chunks}");
        }
    }
    #[tokio::test]
    async fn a_refusal_in_chunks_is_read_without_their_framing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let head = "HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n";
            let body = "4\r\n<Err\r\n3\r\nor>\r\n0\r\n\r\n";
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        });
        let mut request = Request::new(Chunks::default());
        *request.uri_mut() = url.parse().unwrap();
        let range = header::HeaderValue::from_static("bytes=0-9");
        request.headers_mut().insert(header::RANGE, range);
        let http = client(Duration::from_secs(20)).expecting_ranges();
        let response = http.send(request).await.unwrap();
        assert_eq!((response.status, response.is_encoded()), (403, true));
        assert_eq!(response.beginning(100).await, b"<Error>");
    }
}
