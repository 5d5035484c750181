//! Bytes that are sent and received.

use super::Failed;
use crate::Body;
use bytes::{Buf, BufMut, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// The body of a request: chunks that are sent one after the other, none of them copied. Its length is sent with it.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    left: VecDeque<Bytes>,
    /// Bytes that were passed to the connection, for who looks whether anything moves.
    pub(super) sent: Arc<AtomicU64>,
}

impl Chunks {
    /// A body of these chunks.
    pub fn new(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        let left = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        Self { left, sent: Arc::default() }
    }

    /// The number of bytes that are left to send.
    pub fn len(&self) -> u64 {
        self.left.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Whether there is nothing left to send.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.left.pop_front();
        let len = chunk.as_ref().map_or(0, Bytes::len);
        self.sent.fetch_add(len as u64, Ordering::Relaxed);
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

/// The bytes of a response.
pub struct HttpBody {
    incoming: Incoming,
    /// Received, and not passed on yet.
    rest: Bytes,
    /// Bytes that are still to come; `None` if the response does not tell.
    left: Option<u64>,
    endpoint: Arc<str>,
}

impl HttpBody {
    /// A body that has to have `len` bytes, if that is known.
    pub(super) fn new(incoming: Incoming, len: Option<u64>, endpoint: Arc<str>) -> Self {
        Self { incoming, rest: Bytes::new(), left: len, endpoint }
    }

    /// The next bytes as they arrived; `None` at the end.
    ///
    /// # Errors
    /// If the response breaks off, or has more or fewer bytes than it should.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failed> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        // More than this is not waited for: the connection goes back to the others at once.
        if self.left == Some(0) && self.incoming.is_end_stream() {
            return Ok(None);
        }
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.incoming).poll_frame(context)).await;
            let data = match frame {
                None => match self.left {
                    None | Some(0) => return Ok(None),
                    Some(left) => return Err(Failed::Invalid(format!("{left} bytes are missing"))),
                },
                Some(Err(error)) => {
                    return Err(Failed::Transport(self.endpoint.to_string(), error.into()));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => data,
                    // Trailers, which nobody asked for.
                    _ => continue,
                },
            };
            if let Some(left) = &mut self.left {
                *left = left.checked_sub(data.len() as u64).ok_or_else(|| {
                    Failed::Invalid("it has more bytes than it should".to_owned())
                })?;
            }
            return Ok(Some(data));
        }
    }
}

impl Body for HttpBody {
    type Failure = Failed;

    async fn fill(&mut self, to: &mut (impl BufMut + Send + ?Sized)) -> Result<usize, Failed> {
        let room = to.remaining_mut();
        if room == 0 {
            return Ok(0);
        }
        let Some(mut data) = self.chunk().await? else { return Ok(0) };
        let n = data.len().min(room);
        to.put_slice(&data[..n]);
        data.advance(n);
        self.rest = data;
        Ok(n)
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").field("left", &self.left).finish_non_exhaustive()
    }
}
