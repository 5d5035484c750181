//! The log: requests and responses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Uri};

use crate::operation::Operation;

/// One request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// 1 for the first since the start or the last [`reset_log`](crate::Handle::reset_log).
    pub index: usize,
    /// Its name in S3's reference: `GetObject`, `ListObjectsV2` …
    pub operation: &'static str,
    /// HTTP method.
    pub method: String,
    /// Decoded.
    pub bucket: Option<String>,
    /// Decoded.
    pub key: Option<String>,
    /// As sent, without the question mark.
    pub query: String,
    /// The headers that tell what is requested: range, conditions, lengths, `x-amz-*`; names in lower case.
    /// Secrets are left out.
    pub headers: BTreeMap<String, String>,
    /// Whether the request was signed.
    pub signed: bool,
    /// 0 if no response was given (yet).
    pub status: u16,
    /// Bytes of the body received so far, as sent (`aws-chunked` framing included).
    pub bytes_in: u64,
    /// Bytes of the body passed to the connection so far.
    pub bytes_out: u64,
    /// When the head of the request had arrived, since the start of the server.
    pub at: Duration,
    /// From then to the end of the response; `None` while it is in progress.
    pub duration: Option<Duration>,
    /// 1 for the first connection of the server.
    pub connection: u64,
    /// Whether a fault was applied.
    pub faulted: bool,
}

fn is_logged(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "accept-encoding",
        "content-encoding",
        "content-length",
        "content-md5",
        "content-type",
        "host",
        "if-match",
        "if-none-match",
        "range",
        "user-agent",
    ];
    let is_secret = name == "x-amz-security-token";
    (NAMES.contains(&name) || name.starts_with("x-amz-")) && !is_secret
}

/// A request while it is served; its figures grow.
#[derive(Debug)]
pub(crate) struct Entry {
    head: Request,
    started: Instant,
    status: AtomicU16,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// Nanoseconds; 0 while in progress.
    duration: AtomicU64,
    faulted: AtomicBool,
    live: Arc<AtomicUsize>,
}

impl Entry {
    pub(crate) fn request(&self) -> Request {
        let duration = self.duration.load(Ordering::Acquire);
        Request {
            status: self.status.load(Ordering::Acquire),
            bytes_in: self.bytes_in.load(Ordering::Acquire),
            bytes_out: self.bytes_out.load(Ordering::Acquire),
            duration: (duration > 0).then(|| Duration::from_nanos(duration)),
            faulted: self.faulted.load(Ordering::Acquire),
            ..self.head.clone()
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Release);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Release);
    }

    pub(crate) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Release);
    }

    pub(crate) fn faulted(&self) {
        self.faulted.store(true, Ordering::Release);
    }
}

/// Ends its entry when it is dropped: with the body of the response, or with the connection.
pub(crate) struct Live(pub(crate) Arc<Entry>);

impl Drop for Live {
    fn drop(&mut self) {
        let took = self.0.started.elapsed().as_nanos().max(1) as u64;
        self.0.duration.store(took, Ordering::Release);
        self.0.live.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Sums since the last reset.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests by operation.
    pub operations: BTreeMap<String, usize>,
    /// Requests by status; 0 for those without a response.
    pub statuses: BTreeMap<u16, usize>,
    /// Bytes of bodies received.
    pub bytes_in: u64,
    /// Bytes of bodies sent.
    pub bytes_out: u64,
    /// Connections accepted.
    pub connections: usize,
    /// The most requests that were served at once.
    pub peak_in_flight: usize,
}

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Arc<Entry>>,
    connections: usize,
    peak: usize,
}

/// All requests since the last reset.
#[derive(Debug)]
pub(crate) struct Log {
    inner: Mutex<Inner>,
    live: Arc<AtomicUsize>,
    start: Instant,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { inner: Mutex::default(), live: Arc::default(), start: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connected(&self) {
        self.lock().connections += 1;
    }

    pub(crate) fn begin(
        &self,
        operation: &Operation,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        connection: u64,
    ) -> Live {
        let query = uri.query().unwrap_or("").to_owned();
        let logged = headers.iter().filter(|(name, _)| is_logged(name.as_str()));
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let started = Instant::now();
        let mut head = Request {
            index: 0,
            operation: operation.name,
            method: method.to_string(),
            bucket: operation.bucket.clone(),
            key: operation.key.clone(),
            signed: headers.contains_key(http::header::AUTHORIZATION),
            query,
            headers: logged.map(|(name, value)| (name.to_string(), text(value))).collect(),
            status: 0,
            bytes_in: 0,
            bytes_out: 0,
            at: started.duration_since(self.start),
            duration: None,
            connection,
            faulted: false,
        };
        let mut inner = self.lock();
        head.index = inner.entries.len() + 1;
        let entry = Arc::new(Entry {
            head,
            started,
            status: AtomicU16::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            duration: AtomicU64::new(0),
            faulted: AtomicBool::new(false),
            live: Arc::clone(&self.live),
        });
        inner.entries.push(Arc::clone(&entry));
        let live = self.live.fetch_add(1, Ordering::AcqRel) + 1;
        inner.peak = inner.peak.max(live);
        Live(entry)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().entries.iter().map(|entry| entry.request()).collect()
    }

    pub(crate) fn counters(&self) -> Counters {
        Log::sum(&self.lock())
    }

    fn sum(inner: &Inner) -> Counters {
        let mut sum = Counters {
            connections: inner.connections,
            peak_in_flight: inner.peak,
            ..Counters::default()
        };
        for request in inner.entries.iter().map(|entry| entry.request()) {
            *sum.operations.entry(request.operation.to_owned()).or_default() += 1;
            *sum.statuses.entry(request.status).or_default() += 1;
            sum.bytes_in += request.bytes_in;
            sum.bytes_out += request.bytes_out;
        }
        sum
    }

    /// Returns the counters until now, and restarts them at 0. Requests in progress are no longer shown.
    pub(crate) fn reset(&self) -> Counters {
        let mut inner = self.lock();
        let sum = Log::sum(&inner);
        *inner = Inner { peak: self.live.load(Ordering::Acquire), ..Inner::default() };
        sum
    }
}
