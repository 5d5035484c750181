//! Faults: which requests they hit, and what happens to them.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::Handle;
use crate::log::Request;

/// Which of the requests that match a fault it hits, counted from 1 since the injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only this one.
    Nth(usize),
    /// This one and all after it.
    From(usize),
    /// Every `n`-th: `n`, `2n`, `3n` …
    Every(usize),
    /// All.
    All,
}

impl When {
    fn meets(self, count: usize) -> bool {
        match self {
            When::Nth(k) => count == k,
            When::From(k) => count >= k,
            When::Every(n) => n > 0 && count.is_multiple_of(n),
            When::All => true,
        }
    }
}

/// A place in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// After so many bytes.
    Byte(u64),
    /// After half of it.
    Middle,
    /// Before its last byte.
    Last,
}

impl At {
    /// Returns the place in a body of `len` bytes.
    pub(crate) fn of(self, len: u64) -> u64 {
        match self {
            At::Byte(n) => n.min(len),
            At::Middle => len / 2,
            At::Last => len.saturating_sub(1),
        }
    }
}

/// A response in place of the true one.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: bool,
    /// In place of S3's error document.
    pub(crate) document: Option<String>,
}

impl Reply {
    /// Creates a response with this status, and an S3 error code in an XML body.
    pub fn new(status: u16, code: impl Into<String>) -> Reply {
        let message = "A fault that the test requested.".to_owned();
        Reply {
            status,
            code: code.into(),
            message,
            headers: Vec::new(),
            body: true,
            document: None,
        }
    }

    /// Sets the `<Message>` of the body.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Reply {
        self.message = message.into();
        self
    }

    /// Sets this XML as the body, in place of S3's error document.
    #[must_use]
    pub fn document(mut self, xml: impl Into<String>) -> Reply {
        self.document = Some(xml.into());
        self
    }

    /// Leaves the body out.
    #[must_use]
    pub fn no_body(mut self) -> Reply {
        self.body = false;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Reply {
        self.header("retry-after", seconds.to_string())
    }

    /// Creates a redirect to another region: 301 `PermanentRedirect`, 307 `TemporaryRedirect`, 400
    /// `AuthorizationHeaderMalformed`; with `x-amz-bucket-region`.
    pub fn redirect(status: u16, region: &str) -> Reply {
        let code = match status {
            307 => "TemporaryRedirect",
            400 => "AuthorizationHeaderMalformed",
            _ => "PermanentRedirect",
        };
        Reply::new(status, code).header("x-amz-bucket-region", region)
    }
}

/// Holds requests until a test lets them go.
#[derive(Clone, Debug)]
pub struct Gate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    open: watch::Sender<bool>,
    arrived: Mutex<usize>,
    changed: Condvar,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Gate {
        Gate(Arc::new(GateState {
            open: watch::Sender::new(false),
            arrived: Mutex::new(0),
            changed: Condvar::new(),
        }))
    }

    /// Lets all requests go, also later ones.
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Waits until `count` requests in all have arrived at the gate; `false` after `timeout`.
    pub fn wait_for(&self, count: usize, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut arrived = self.0.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        while *arrived < count {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            arrived = self
                .0
                .changed
                .wait_timeout(arrived, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    pub(crate) async fn pass(&self) {
        *self.0.arrived.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.changed.notify_all();
        let mut open = self.0.open.subscribe();
        // The sender lives as long as `self`.
        let _ = open.wait_for(|open| *open).await;
    }
}

/// Code of a test that runs between two requests.
pub type Hook = Arc<dyn Fn(&Handle, &Request) + Send + Sync>;

/// The fault of a request.
#[derive(Clone)]
#[non_exhaustive]
pub enum What {
    /// A new connection is reset as soon as it is accepted. Counts connections; the operation and the key of the fault
    /// are ignored.
    Refuse,
    /// The connection is reset before the request is looked at; its body is not read.
    Reset,
    /// The connection is closed before the request is looked at; its body is not read.
    Close,
    /// The server closes its direction of the connection and responds no more, but the connection stays.
    HalfClose,
    /// The head of the response and so many bytes of its body are sent, then the connection is reset. Bytes that
    /// the client has not taken from its socket by then may be lost.
    ResetBody(At),
    /// The head of the response and so many bytes of its body are sent, then the connection is closed.
    CutBody(At),
    /// There is never a response; the request is not done.
    Stall,
    /// The head of the response and so many bytes of its body are sent, and then never anything more.
    StallBody(At),
    /// After so many bytes the rest of the body is sent byte by byte, this far apart.
    TrickleBody(At, Duration),
    /// The head of the response is sent byte by byte, this far apart (its first 512 bytes).
    SlowHead(Duration),
    /// The response promises to keep the connection, which is closed right after it.
    CloseIdle,
    /// After this response the next request on the same connection is reset.
    ResetOnReuse,

    /// This is the response; the request is not done.
    Status(Reply),
    /// The request is done, then this is the response.
    DoneThenStatus(Reply),
    /// The request is done, then the connection is reset.
    LoseAck,
    /// The request is done, but there is never a response.
    DoneThenStall,
    /// 200 with an `<Error>` of this code in the body; the request is not done.
    ErrorIn200(String),

    /// The response to a range request is the whole object with 200.
    WholeFor206,
    /// `Content-Range` is one byte off.
    WrongContentRange,
    /// `Content-Length` is more than the body (then the connection is closed at the end) or less (then excess bytes
    /// follow).
    ContentLength(i64),
    /// The response has no ETag, in headers or body.
    NoEtag,
    /// The response has another ETag, in headers or body.
    ChangedEtag,
    /// The body is XML that ends in the middle.
    BadXml,
    /// The body is well-formed XML with so many bytes more in it.
    HugeXml(usize),
    /// The body is XML whose entities would expand to gigabytes.
    XmlBomb,
    /// Unknown elements and attributes are in the XML: harmless.
    UnknownXml,
    /// A listing says that there is more after it, and the token leads to the same page again.
    EndlessListing,
    /// A listing says that there is more after it, without a token.
    TruncatedWithoutToken,
    /// The body is compressed on the way.
    Gzip,
    /// The response has this additional header.
    Header(String, String),

    /// The request waits at the gate before it is processed. Combines with other faults.
    Pause(Gate),
    /// The request is done and waits at the gate before the response. Combines with other faults.
    PauseDone(Gate),
    /// Runs before the request is processed, in a separate thread. Combines with other faults.
    Do(Hook),
}

impl What {
    /// Creates [`What::Do`] from a closure.
    pub fn run(hook: impl Fn(&Handle, &Request) + Send + Sync + 'static) -> What {
        What::Do(Arc::new(hook))
    }

    /// Creates [`What::Status`] with an S3 error code and a body.
    pub fn status(status: u16, code: impl Into<String>) -> What {
        What::Status(Reply::new(status, code))
    }
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            What::Refuse => "Refuse",
            What::Reset => "Reset",
            What::Close => "Close",
            What::HalfClose => "HalfClose",
            What::ResetBody(at) => return write!(f, "ResetBody({at:?})"),
            What::CutBody(at) => return write!(f, "CutBody({at:?})"),
            What::Stall => "Stall",
            What::StallBody(at) => return write!(f, "StallBody({at:?})"),
            What::TrickleBody(at, every) => return write!(f, "TrickleBody({at:?}, {every:?})"),
            What::SlowHead(every) => return write!(f, "SlowHead({every:?})"),
            What::CloseIdle => "CloseIdle",
            What::ResetOnReuse => "ResetOnReuse",
            What::Status(reply) => return write!(f, "Status({}, {:?})", reply.status, reply.code),
            What::DoneThenStatus(reply) => {
                return write!(f, "DoneThenStatus({}, {:?})", reply.status, reply.code);
            }
            What::LoseAck => "LoseAck",
            What::DoneThenStall => "DoneThenStall",
            What::ErrorIn200(code) => return write!(f, "ErrorIn200({code:?})"),
            What::WholeFor206 => "WholeFor206",
            What::WrongContentRange => "WrongContentRange",
            What::ContentLength(by) => return write!(f, "ContentLength({by})"),
            What::NoEtag => "NoEtag",
            What::ChangedEtag => "ChangedEtag",
            What::BadXml => "BadXml",
            What::HugeXml(len) => return write!(f, "HugeXml({len})"),
            What::XmlBomb => "XmlBomb",
            What::UnknownXml => "UnknownXml",
            What::EndlessListing => "EndlessListing",
            What::TruncatedWithoutToken => "TruncatedWithoutToken",
            What::Gzip => "Gzip",
            What::Header(name, value) => return write!(f, "Header({name:?}, {value:?})"),
            What::Pause(_) => "Pause",
            What::PauseDone(_) => "PauseDone",
            What::Do(_) => "Do",
        };
        f.write_str(name)
    }
}

/// Something that goes wrong, and when.
#[derive(Clone, Debug)]
pub struct Fault<'a> {
    /// Which of the matching requests.
    pub when: When,
    /// Only requests of this operation match, as S3's reference names it; any if `None`.
    pub operation: Option<&'a str>,
    /// Only requests for this key match; any if `None`.
    pub key: Option<&'a str>,
    /// How many requests it hits; then it is over.
    pub times: usize,
    /// What happens.
    pub what: What,
}

impl<'a> Fault<'a> {
    /// Creates a fault for any operation and key, without an end.
    pub fn new(when: When, what: What) -> Fault<'a> {
        Fault { when, operation: None, key: None, times: usize::MAX, what }
    }

    /// Sets the operation of the requests that match.
    #[must_use]
    pub fn operation(mut self, operation: &'a str) -> Fault<'a> {
        self.operation = Some(operation);
        self
    }

    /// Sets the key of the requests that match.
    #[must_use]
    pub fn key(mut self, key: &'a str) -> Fault<'a> {
        self.key = Some(key);
        self
    }

    /// Sets how many requests it hits; then it is over.
    #[must_use]
    pub fn times(mut self, times: usize) -> Fault<'a> {
        self.times = times;
        self
    }
}

/// A handle of an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(usize);

#[derive(Debug)]
struct Injected {
    when: When,
    operation: Option<String>,
    key: Option<String>,
    times: usize,
    what: What,
    seen: usize,
    met: usize,
    cleared: bool,
}

/// The faults of a server.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Vec<Injected>>);

impl Faults {
    pub(crate) fn inject(&self, fault: Fault<'_>) -> FaultId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Injected {
            when: fault.when,
            operation: fault.operation.map(str::to_owned),
            key: fault.key.map(str::to_owned),
            times: fault.times,
            what: fault.what,
            seen: 0,
            met: 0,
            cleared: false,
        });
        FaultId(all.len() - 1)
    }

    pub(crate) fn clear(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter_mut().for_each(|fault| fault.cleared = true);
    }

    pub(crate) fn met(&self, id: FaultId) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[id.0].met
    }

    fn matching(&self, matches: impl Fn(&Injected) -> bool) -> Vec<What> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut met = Vec::new();
        for fault in all.iter_mut().filter(|fault| !fault.cleared && matches(fault)) {
            fault.seen += 1;
            if fault.when.meets(fault.seen) && fault.met < fault.times {
                fault.met += 1;
                met.push(fault.what.clone());
            }
        }
        met
    }

    /// Returns whether a new connection is refused.
    pub(crate) fn refuses(&self) -> bool {
        !self.matching(|fault| matches!(fault.what, What::Refuse)).is_empty()
    }

    /// Returns what happens to this request, in the order of injection.
    pub(crate) fn meet(&self, operation: &str, key: Option<&str>) -> Vec<What> {
        self.matching(|fault| {
            !matches!(fault.what, What::Refuse)
                && fault.operation.as_deref().is_none_or(|wanted| wanted == operation)
                && fault.key.as_deref().is_none_or(|wanted| Some(wanted) == key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting() {
        let faults = Faults::default();
        let id = faults.inject(Fault::new(When::Nth(2), What::Reset).operation("GetObject"));
        let every = faults.inject(Fault::new(When::Every(2), What::Stall).times(1));
        let from = faults.inject(Fault::new(When::From(3), What::Close).key("k"));
        for (operation, met) in
            [("GetObject", 0), ("HeadObject", 1), ("GetObject", 2), ("GetObject", 1)]
        {
            assert_eq!(faults.meet(operation, Some("k")).len(), met, "{operation}");
        }
        assert_eq!([id, every, from].map(|id| faults.met(id)), [1, 1, 2]);
        faults.clear();
        assert!(faults.meet("GetObject", Some("k")).is_empty());
    }
}
