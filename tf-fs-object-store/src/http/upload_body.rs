//! The body of a request that is being sent, in pieces that show its progress.

use super::BoxError;
use crate::metrics::BYTES_SENT;
use crate::retry::{BUFFERED, max_grace};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The most bytes passed to a connection at once.
const PIECE: usize = 256 << 10;

/// A body of any kind.
pub(super) struct UploadBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    /// The rest of a piece that is too large.
    rest: Bytes,
    progress: Arc<UploadProgress>,
}

impl UploadBody {
    /// Creates a body and its progress.
    pub(super) fn new<B>(body: B) -> (Self, Arc<UploadProgress>)
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let progress = Arc::new(UploadProgress::new());
        let inner = body.map_err(Into::into).boxed_unsync();
        (Self { inner, rest: Bytes::new(), progress: Arc::clone(&progress) }, progress)
    }
}

impl Body for UploadBody {
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
        BYTES_SENT.add(len as u64);
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

/// When a body last made progress.
#[derive(Debug)]
pub(super) struct UploadProgress {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
    /// Bytes passed to the connection.
    sent: AtomicU64,
}

impl UploadProgress {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0), sent: AtomicU64::new(0) }
    }

    fn moved(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Waits until there was no progress for `stall`.
    pub(super) async fn stalled(&self, stall: Duration) {
        loop {
            // The bytes sent last may stay in the system's buffers for a while, where their progress is not seen.
            let buffered = self.sent.load(Ordering::Relaxed).min(BUFFERED);
            let patience = stall + max_grace(stall).min(Duration::from_micros(buffered));
            let deadline =
                self.start + Duration::from_millis(self.last.load(Ordering::Relaxed)) + patience;
            if Instant::now() >= deadline {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Chunks;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn a_moving_transfer_is_not_ended() {
        let progress = Arc::new(UploadProgress::new());
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
    async fn bytes_in_the_systems_buffers_have_extra_time() {
        for (sent, stall, patience) in
            [(3_000_000, 10_000, 13_000), (3_000_000, 300, 1_500), (1 << 40, 20_000, 28_388)]
        {
            let progress = UploadProgress::new();
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
        let (mut body, _) = UploadBody::new(Chunks::new([data.clone().into()]));
        let (mut sent, mut pieces) = (Vec::new(), 0);
        assert_eq!(body.size_hint().exact(), Some(data.len() as u64));
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            sent.extend_from_slice(&frame.unwrap().into_data().unwrap());
            assert_eq!(body.size_hint().exact(), Some((data.len() - sent.len()) as u64));
            pieces += 1;
        }
        assert_eq!((pieces, sent == data), (3, true));
    }
}
