//! Ends requests that make no progress and answers that do not end, says at which attempt one failed, and counts bytes.
//!
//! The SDK's own limits do not fit: its read timeout includes the sending of the body, so that a slow
//! upload fails, and its protection against stalled streams does not cover the wait for an answer.

use crate::metrics;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tf_fs_object_store::{BUFFERED, longest_grace};
use tokio::time::{Instant, Sleep, sleep_until};

/// Our header on answers: at which attempt they came.
pub(crate) const ATTEMPT_HEADER: &str = "x-tf-s3-attempt";

/// A client whose requests end if they make no progress.
#[derive(Debug)]
pub(super) struct Watched {
    inner: SharedHttpClient,
    stall: Duration,
}

impl Watched {
    pub(super) fn new(inner: SharedHttpClient, stall: Duration) -> Self {
        Self { inner, stall }
    }
}

impl HttpClient for Watched {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(WatchedConnector { inner, stall: self.stall })
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.inner.connector_metadata()
    }
}

#[derive(Debug)]
struct WatchedConnector {
    inner: SharedHttpConnector,
    stall: Duration,
}

impl HttpConnector for WatchedConnector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let attempt = attempt_of(&request).unwrap_or(1);
        let endpoint = endpoint(request.uri());
        let is_stream = is_streamed(request.uri());
        let progress = Arc::new(Progress::new());
        let body = request.take_body();
        *request.body_mut() = SdkBody::from_body_1_x(Sent {
            inner: body,
            rest: Bytes::new(),
            progress: Arc::clone(&progress),
        });
        let stall = self.stall;
        let answer = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            let answer = {
                let mut answer = pin!(answer);
                let mut stalled = pin!(progress.stalled(stall));
                tokio::select! {
                    biased;
                    answer = &mut answer => answer,
                    () = &mut stalled => Err(ConnectorError::timeout(Stalled(stall).into())),
                }
            };
            match answer {
                Ok(mut response) => {
                    response.headers_mut().insert(ATTEMPT_HEADER, attempt.to_string());
                    let body = response.take_body();
                    let is_stream = is_stream && response.status().is_success();
                    *response.body_mut() = SdkBody::from_body_1_x(Received {
                        inner: body,
                        room: if is_stream { u64::MAX } else { LARGEST },
                        stall,
                        deadline: Box::pin(sleep_until(Instant::now() + stall)),
                    });
                    Ok(response)
                }
                Err(error) => Err(at_attempt(error, attempt, endpoint)),
            }
        })
    }
}

/// The attempt that the SDK says a request is, from one.
pub(crate) fn attempt_of(request: &HttpRequest) -> Option<u32> {
    attempt_in(request.headers().get("amz-sdk-request")?)
}

/// The number in `attempt=2; max=6`.
fn attempt_in(header: &str) -> Option<u32> {
    let (_, rest) = header.split_once("attempt=")?;
    rest.split(';').next()?.trim().parse().ok()
}

/// The same error, with the number of the attempt where it is looked for.
fn at_attempt(error: ConnectorError, number: u32, endpoint: String) -> ConnectorError {
    let (io, timeout, user, other) =
        (error.is_io(), error.is_timeout(), error.is_user(), error.as_other());
    let source: BoxError = Attempt { number, endpoint, source: error.into_source() }.into();
    if io {
        ConnectorError::io(source)
    } else if timeout {
        ConnectorError::timeout(source)
    } else if user {
        ConnectorError::user(source)
    } else {
        ConnectorError::other(source, other)
    }
}

/// The attempt at which a request failed without an answer.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    /// Scheme, host and port.
    pub(crate) endpoint: String,
    source: BoxError,
}

impl Attempt {
    /// Why it failed.
    pub(crate) fn cause(&self) -> &(dyn std::error::Error + 'static) {
        self.source.as_ref()
    }
}

/// Whether the body of the answer is passed on as it arrives. The SDK keeps all others in memory.
fn is_streamed(url: &str) -> bool {
    let (_, query) = url.split_once('?').unwrap_or_default();
    query.split('&').any(|parameter| parameter == "x-id=GetObject")
}

/// Scheme, host and port of a URL.
fn endpoint(url: &str) -> String {
    let end = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[end..].find(['/', '?']).map_or(url.len(), |path| end + path);
    url[..end].to_owned()
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {}", self.number)
    }
}

impl std::error::Error for Attempt {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.source.as_ref())
    }
}

/// A request made no progress for this long.
#[derive(Debug)]
pub(crate) struct Stalled(Duration);

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no progress for {:?}", self.0)
    }
}

impl std::error::Error for Stalled {}

/// A body that is kept in memory may have so many bytes. The largest that a store sends on purpose has about 4 MiB: a
/// listing of 1,000 keys of 1,024 bytes, each of them written in three.
const LARGEST: u64 = 32 << 20;

/// An answer is larger than anything that was asked for.
#[derive(Debug)]
pub(crate) struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the response has more than {} MiB", LARGEST >> 20)
    }
}

impl std::error::Error for TooLarge {}

/// When something last moved.
#[derive(Debug)]
struct Progress {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
    /// Bytes handed to the system.
    sent: AtomicU64,
}

impl Progress {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0), sent: AtomicU64::new(0) }
    }

    fn moved(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Ends when nothing has moved for `stall`.
    async fn stalled(&self, stall: Duration) {
        loop {
            // What was sent last may be in the system's buffers for a while, where its progress is not seen.
            let buffered = self.sent.load(Ordering::Relaxed).min(BUFFERED);
            let patience = stall + longest_grace(stall).min(Duration::from_micros(buffered));
            let deadline =
                self.start + Duration::from_millis(self.last.load(Ordering::Relaxed)) + patience;
            if Instant::now() >= deadline {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

/// A body on its way to the store, in pieces that show whether it moves.
struct Sent {
    inner: SdkBody,
    /// Of a piece that is too large.
    rest: Bytes,
    progress: Arc<Progress>,
}

const PIECE: usize = 256 << 10;

impl Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.progress.moved();
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            }
        }
        let len = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(len);
        metrics::BYTES_SENT.add(len as u64);
        self.progress.sent.fetch_add(len as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let rest = self.rest.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// A body on its way from the store.
struct Received {
    inner: SdkBody,
    /// How many more bytes there may be.
    room: u64,
    stall: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.inner.size_hint().lower() > self.room {
            return Poll::Ready(Some(Err(TooLarge.into())));
        }
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                let deadline = Instant::now() + self.stall;
                self.deadline.as_mut().reset(deadline);
                if let Some(Ok(frame)) = &frame
                    && let Some(data) = frame.data_ref()
                {
                    let len = data.remaining() as u64;
                    metrics::BYTES_RECEIVED.add(len);
                    match self.room.checked_sub(len) {
                        Some(room) => self.room = room,
                        None => return Poll::Ready(Some(Err(TooLarge.into()))),
                    }
                }
                Poll::Ready(frame)
            }
            Poll::Pending => {
                ready!(self.deadline.as_mut().poll(context));
                Poll::Ready(Some(Err(Stalled(self.stall).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempt_is_read() {
        assert_eq!(attempt_in("attempt=2; max=6"), Some(2));
        assert_eq!(attempt_in("ttl=x; attempt=11; max=6"), Some(11));
        assert_eq!(attempt_in("max=6"), None);
    }

    #[test]
    fn only_the_bytes_of_objects_are_streamed() {
        assert!(is_streamed("http://h/b/k?partNumber=1&x-id=GetObject"));
        for url in [
            "http://h/b/k",
            "http://h/b/x-id=GetObject",
            "http://h/b?x-id=GetObjectAcl",
            "http://h/b?prefix=x-id%3DGetObject",
        ] {
            assert!(!is_streamed(url), "{url}");
        }
    }

    #[test]
    fn the_endpoint_is_cut_out() {
        assert_eq!(endpoint("http://h:1/b/k?x=http://y"), "http://h:1");
        assert_eq!(endpoint("https://h?x"), "https://h");
        assert_eq!(endpoint("https://h"), "https://h");
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_is_not_ended() {
        let progress = Arc::new(Progress::new());
        let moving = Arc::clone(&progress);
        tokio::spawn(async move {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                moving.moved();
            }
        });
        let start = Instant::now();
        progress.stalled(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 55);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_system_holds_has_its_time() {
        for (sent, stall, patience) in
            [(3_000_000, 10_000, 13_000), (3_000_000, 300, 1_500), (1 << 40, 20_000, 28_388)]
        {
            let progress = Progress::new();
            progress.sent.store(sent, Ordering::Relaxed);
            let start = Instant::now();
            progress.stalled(Duration::from_millis(stall)).await;
            let waited = start.elapsed().as_millis();
            assert!(waited.abs_diff(patience) <= 2, "{sent} {stall}: {waited}");
        }
    }

    #[tokio::test]
    async fn large_pieces_are_cut_and_stay_whole() {
        let data: Vec<u8> = (0..PIECE * 2 + 17).map(|i| i as u8).collect();
        let mut body = Sent {
            inner: SdkBody::from(data.clone()),
            rest: Bytes::new(),
            progress: Arc::new(Progress::new()),
        };
        let (mut sent, mut pieces) = (Vec::new(), 0);
        assert_eq!(body.size_hint().exact(), Some(data.len() as u64));
        while let Some(frame) =
            std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            sent.extend_from_slice(&frame.unwrap().into_data().unwrap());
            assert_eq!(body.size_hint().exact(), Some((data.len() - sent.len()) as u64));
            pieces += 1;
        }
        assert_eq!((pieces, sent == data), (3, true));
    }
}
