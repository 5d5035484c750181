//! An HTTP server whose responses a test scripts: what is sent is what the test says, right or wrong.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request, as it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the first and the last byte that it requests.
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().unwrap(), last.parse().unwrap()))
    }
}

/// A response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Says no length: the body ends with the connection.
    pub(crate) no_length: bool,
    /// Sends so many bytes of the body, then closes the connection.
    pub(crate) cut: Option<usize>,
    /// Sends so many bytes of the body, then nothing.
    pub(crate) stall: Option<usize>,
    /// Closes the connection without a response.
    pub(crate) drop: bool,
    /// Sends this head, instead of one made from `status` and `headers`.
    pub(crate) head: Option<Vec<u8>>,
}

impl Reply {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a header, in place of one of the same name.
    pub(crate) fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }
}

type Handler = dyn Fn(&Request, usize) -> Reply + Send + Sync;

/// Returns a certificate for this host, by its own authority: the key in PEM, the certificate and the authority's in
/// PEM, and certificate and key for rustls.
pub(crate) fn authority(
    host: &str,
) -> (String, (String, String), (CertificateDer<'static>, PrivateKeyDer<'static>)) {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([host.to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (key.serialize_pem(), (leaf.pem(), ca.pem()), (leaf.der().clone(), der))
}

/// A server, which ends when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    address: SocketAddr,
    pub(crate) scheme: &'static str,
    /// The certificate of its authority in PEM.
    pub(crate) authority: String,
    log: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    /// Starts a server that passes each request, with its number counted from 0, to `handler`.
    pub(crate) fn new(handler: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), handler)
    }

    /// Starts one at this address; port 0 is any.
    pub(crate) fn at(
        address: SocketAddr,
        handler: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(address, Arc::new(handler), None, String::new())
    }

    /// Starts a server with TLS, and a certificate for this host.
    pub(crate) fn tls(
        host: &str,
        handler: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let (_, (_, authority), (leaf, key)) = authority(host);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf], key)
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start(address, Arc::new(handler), Some(Arc::new(config)), authority)
    }

    fn start(
        address: SocketAddr,
        handler: Arc<Handler>,
        tls: Option<Arc<rustls::ServerConfig>>,
        authority: String,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Mutex<Vec<Request>>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let connections = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&connections);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (all, over) = (Arc::clone(&log), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let (log, handler, tls) = (Arc::clone(&all), Arc::clone(&handler), tls.clone());
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    // Head and body are two writes: without this the second may wait 40 ms.
                    stream.set_nodelay(true).unwrap();
                    let end = stream.try_clone().unwrap();
                    match tls {
                        None => serve(stream, &log, &*handler),
                        Some(config) => {
                            let session = rustls::ServerConnection::new(config).unwrap();
                            serve(rustls::StreamOwned::new(session, stream), &log, &*handler);
                        }
                    }
                    let _ = end.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port: address.port(), address, scheme, authority, log, connections, is_over }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}/{path}", self.scheme, self.port)
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns all requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<Request> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Serves one connection, until it is closed or a response says so.
fn serve(stream: impl Read + Write, log: &Mutex<Vec<Request>>, handler: &Handler) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        let reply = handler(&request, number);
        if write(stream.get_mut(), &request, &reply).is_none() {
            return;
        }
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let mut request =
        Request { method: words.next()?, target: words.next()?, ..Request::default() };
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Some(request) };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Sends a response; `None` if the connection ends with it.
fn write(stream: &mut impl Write, request: &Request, reply: &Reply) -> Option<()> {
    if reply.drop {
        return None;
    }
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    let has_length = reply.headers.iter().any(|(name, _)| {
        ["content-length", "transfer-encoding"].iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    if !has_length && !reply.no_length {
        head += &format!("Content-Length: {}\r\n", reply.body.len());
    }
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let head = reply.head.clone().unwrap_or_else(|| (head + "\r\n").into_bytes());
    stream.write_all(&head).ok()?;
    if request.method != "HEAD" {
        let end = reply.cut.or(reply.stall).unwrap_or(reply.body.len()).min(reply.body.len());
        stream.write_all(&reply.body[..end]).ok()?;
        stream.flush().ok()?;
        if reply.stall.is_some() {
            thread::sleep(Duration::from_secs(30));
        }
    }
    stream.flush().ok()?;
    (reply.cut.is_none() && !reply.no_length).then_some(())
}

/// A file of a server.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) etag: String,
}

impl Content {
    /// Creates bytes that differ from those at neighbouring positions, and by `seed`.
    pub(crate) fn new(len: usize, seed: usize) -> Self {
        let bytes = (0..len).map(|position| ((position + seed) % 251) as u8).collect();
        Self { bytes: Arc::new(bytes), etag: format!("\"{len}-{seed}\"") }
    }

    /// Returns the response of a correct server: with ranges, and `If-Match`.
    pub(crate) fn reply(&self, request: &Request) -> Reply {
        if request.header("if-match").is_some_and(|wanted| wanted != self.etag) {
            return Reply::new(412);
        }
        let (reply, size) = (Reply::new(200), self.bytes.len());
        let reply = reply
            .header("ETag", &self.etag)
            .header("Accept-Ranges", "bytes")
            .header("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        match request.range() {
            None => reply.body(&**self.bytes),
            Some((first, _)) if first >= size => {
                Reply::new(416).header("Content-Range", format!("bytes */{size}"))
            }
            Some((first, last)) => {
                let last = last.min(size - 1);
                let range = format!("bytes {first}-{last}/{size}");
                Reply { status: 206, ..reply }
                    .body(&self.bytes[first..=last])
                    .header("Content-Range", range)
            }
        }
    }

    /// Starts a correct server of this file alone.
    pub(crate) fn serve(&self) -> Server {
        let content = self.clone();
        Server::new(move |request, _| content.reply(request))
    }

    /// Returns the response of a server without ranges.
    pub(crate) fn whole(&self) -> Reply {
        Reply::new(200).body(&**self.bytes)
    }
}

/// Returns a body in the format of `Transfer-Encoding: chunked`.
pub(crate) fn chunked(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for chunk in bytes.chunks(100_000) {
        write!(body, "{:x}\r\n", chunk.len()).unwrap();
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    body
}
