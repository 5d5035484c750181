//! The path of one request: named, logged, changed by faults, served by `s3s`, slowed down.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::StdError;

use crate::answer::{self, Answer, End, Ends, Outgoing, Then};
use crate::auth::bucket_of;
use crate::control;
use crate::fault::{Reply, What};
use crate::log::{Entry, Live};
use crate::operation::classify;
use crate::service::{IgnoreConditions, IgnoreRange, RefuseChecksumsOfParts};
use crate::shape::Wire;
use crate::{Core, Handle};

/// The state that the requests of one connection share.
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) wire: Arc<Wire>,
    pub(crate) ends: Ends,
    /// Whether the next request is reset.
    pub(crate) doomed: AtomicBool,
}

impl Connection {
    /// Ends the connection; never returns, because the calling task ends with it.
    async fn end(&self, end: End) -> ! {
        // A task that is gone has no connection to end.
        let _ = self.ends.send(end);
        std::future::pending().await
    }
}

/// The body of a request, counted.
struct Counted {
    inner: Incoming,
    entry: Arc<Entry>,
}

impl Body for Counted {
    type Data = bytes::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, hyper::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.entry.received(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Reads what the client still sends, so that it reads the response.
async fn drain(mut body: s3s::Body) -> Result<(), StdError> {
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        frame?;
    }
    Ok(())
}

/// Serves one request.
pub(crate) async fn serve(
    core: Arc<Core>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Infallible> {
    if connection.doomed.load(Ordering::Acquire) {
        connection.end(End::Reset).await;
    }
    if request.uri().path().starts_with("/_server/") {
        let answer = control::serve(&Handle(core), request.uri());
        return Ok(Outgoing::answer(answer, None, &connection));
    }
    let operation = classify(request.method(), request.uri(), request.headers());
    let live = core.log.begin(
        &operation,
        request.method(),
        request.uri(),
        request.headers(),
        connection.number,
    );
    let entry = Arc::clone(&live.0);
    let faults = core.faults.meet(operation.name, operation.key.as_deref());
    if !faults.is_empty() {
        entry.faulted();
    }
    for fault in &faults {
        match fault {
            What::Pause(gate) => gate.pass().await,
            What::Do(hook) => {
                let (hook, handle, request) =
                    (Arc::clone(hook), Handle(Arc::clone(&core)), entry.request());
                // A hook that panics has failed its test already: its message is on standard error.
                let _ = tokio::task::spawn_blocking(move || hook(&handle, &request)).await;
            }
            _ => {}
        }
    }
    let fault = faults
        .iter()
        .find(|fault| !matches!(fault, What::Pause(_) | What::PauseDone(_) | What::Do(_)))
        .cloned();
    match fault {
        Some(What::Reset) => connection.end(End::Reset).await,
        Some(What::Close) => connection.end(End::Close).await,
        Some(What::HalfClose) => connection.end(End::HalfClose).await,
        Some(What::Stall) => std::future::pending().await,
        _ => {}
    }
    let head = *request.method() == http::Method::HEAD;
    let quirks = core.character.get(&operation.bucket);
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let in_path = operation.bucket.is_some() && host.and_then(bucket_of).is_none();
    let refusal = quirks.refusal(operation.name, request.method(), request.headers(), in_path);
    let (mut parts, body) = request.into_parts();
    let body = s3s::Body::http_body(Counted { inner: body, entry: Arc::clone(&entry) });
    let request_id = format!("{:016X}", core.request_id());

    let mut answer = match (&fault, &refusal) {
        (Some(What::Status(reply)), _) => {
            // A client that disconnects while it sends needs no response.
            let _ = drain(body).await;
            answer::error(reply, head)
        }
        (Some(What::ErrorIn200(code)), _) => {
            let _ = drain(body).await;
            answer::error(&Reply::new(200, code.clone()), head)
        }
        (_, Some(reply)) => {
            let _ = drain(body).await;
            answer::error(reply, head)
        }
        _ => {
            if matches!(fault, Some(What::WholeFor206)) {
                parts.extensions.insert(IgnoreRange);
            }
            if quirks.ignores(operation.name) {
                parts.extensions.insert(IgnoreConditions);
            }
            if quirks.no_checksums_of_parts {
                parts.extensions.insert(RefuseChecksumsOfParts);
            }
            parts.extensions.insert(quirks.habits);
            let request = Request::from_parts(parts, body);
            match core.s3.call(request).await {
                Ok(answer) if quirks.quiet_deletions && operation.name == "DeleteObjects" => {
                    answer::quiet(answer).await
                }
                Ok(answer) => answer,
                Err(_) => answer::error(&Reply::new(500, "InternalError"), head),
            }
        }
    };
    for fault in &faults {
        if let What::PauseDone(gate) = fault {
            gate.pass().await;
        }
    }
    if head
        && answer.status() == StatusCode::OK
        && answer.headers().contains_key(header::CONTENT_RANGE)
    {
        // As S3 does; s3s responds with 200 to every HEAD.
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    answer::set(answer.headers_mut(), "x-amz-request-id", &request_id);
    let answer = match fault {
        None => answer,
        Some(fault) => alter(&connection, answer, &fault, head).await,
    };
    entry.answered(answer.status().as_u16());
    drop(entry);
    let latency = core.network.shape().first_byte_latency;
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    Ok(answer_with(&connection, answer, live, &faults, head))
}

/// Applies a fault to an existing response.
async fn alter(connection: &Connection, mut answer: Answer, fault: &What, head: bool) -> Answer {
    match fault {
        What::LoseAck => connection.end(End::Reset).await,
        What::DoneThenStall => std::future::pending().await,
        What::DoneThenStatus(reply) => return answer::error(reply, head),
        What::WrongContentRange => answer::wrong_range(&mut answer),
        What::NoEtag => return answer::etag(answer, None).await,
        What::ChangedEtag => {
            return answer::etag(answer, Some("\"ffffffffffffffffffffffffffffffff\"")).await;
        }
        What::BadXml => return answer::bad_xml(answer).await,
        What::HugeXml(len) => return answer::huge_xml(answer, *len).await,
        What::XmlBomb => return answer::xml_bomb(answer).await,
        What::UnknownXml => return answer::unknown_xml(answer).await,
        What::EndlessListing => return answer::endless(answer, true).await,
        What::TruncatedWithoutToken => return answer::endless(answer, false).await,
        What::Gzip => return answer::gzip(answer).await,
        What::Header(name, value) => answer::set(answer.headers_mut(), name, value),
        What::ResetOnReuse => connection.doomed.store(true, Ordering::Release),
        _ => {}
    }
    answer
}

/// Returns the response with a body that does what the fault requires.
fn answer_with(
    connection: &Arc<Connection>,
    mut answer: Answer,
    live: Live,
    faults: &[What],
    head: bool,
) -> Response<Outgoing> {
    let len = answer::length(&answer).unwrap_or(0);
    let bodiless = head || len == 0;
    let mut cut = None;
    let mut idle = false;
    for fault in faults {
        match fault {
            What::ResetBody(at) => cut = Some((at.of(len), Then::Reset)),
            What::CutBody(at) => cut = Some((at.of(len), Then::Close)),
            What::StallBody(at) => cut = Some((at.of(len), Then::Stall)),
            What::TrickleBody(at, every) => cut = Some((at.of(len), Then::Trickle(*every))),
            What::SlowHead(every) => connection.wire.trickle(512, *every),
            What::CloseIdle => idle = true,
            What::ContentLength(by) => {
                let told = len.saturating_add_signed(*by);
                if *by < 0 || bodiless {
                    // hyper checks the head against the body that it has, or has not.
                    answer::set(answer.headers_mut(), "content-length", &len.to_string());
                    let line = |len: u64| format!("content-length: {len}\r\n");
                    connection.wire.patch(line(len), line(told));
                } else {
                    answer::set(answer.headers_mut(), "content-length", &told.to_string());
                }
                if *by >= 0 {
                    cut = Some((u64::MAX, Then::Close));
                }
            }
            _ => {}
        }
    }
    let mut answer = Outgoing::answer(answer, Some(live), connection);
    match cut {
        Some((_, Then::Reset | Then::Close)) if bodiless => {
            // There is no body to hold back: the connection ends once the head is sent.
            let end = if matches!(cut, Some((_, Then::Reset))) { End::Reset } else { End::Close };
            let ends = connection.ends.clone();
            tokio::spawn(async move {
                tokio::time::sleep(answer::SETTLE).await;
                // A task that is gone has no connection to end.
                let _ = ends.send(end);
            });
        }
        Some((left, then)) => {
            if left == u64::MAX {
                answer.body_mut().lies();
            }
            answer.body_mut().after(left, then);
        }
        None => {}
    }
    if idle {
        answer.body_mut().close_idle();
    }
    answer
}

impl Outgoing {
    fn answer(answer: Answer, live: Option<Live>, connection: &Connection) -> Response<Outgoing> {
        let (parts, body) = answer.into_parts();
        let body = Outgoing::new(body, live, Arc::clone(&connection.wire), connection.ends.clone());
        Response::from_parts(parts, body)
    }
}

/// The service of one connection.
pub(crate) struct Front {
    pub(crate) core: Arc<Core>,
    pub(crate) connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Front {
    type Response = Response<Outgoing>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Outgoing>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(serve(Arc::clone(&self.core), Arc::clone(&self.connection), request))
    }
}
