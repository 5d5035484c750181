//! Bodies of requests and responses.

use super::HttpError;
use super::pool::{Pool, PoolKey};
use super::raw_connection::{BodyProgress, RawConnection};
use crate::Body;
use crate::metrics::BYTES_RECEIVED;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The body of a request: chunks that are sent one after the other without a copy. Its length is sent with it.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    left: VecDeque<Bytes>,
}

impl Chunks {
    /// Creates a body of these chunks.
    pub fn new(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        let left = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        Self { left }
    }

    /// Returns the number of bytes that are left to send.
    pub fn len(&self) -> u64 {
        self.left.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Returns whether nothing is left to send.
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
        Poll::Ready(self.left.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

/// The size of a chunk where the caller gives no buffer, in bytes.
const CHUNK: usize = 64 << 10;

/// The bytes of a response.
pub struct HttpBody {
    source: Source,
    /// Received, and not passed on yet.
    rest: Bytes,
    /// Bytes that are still to come; `None` if the response does not tell.
    left: Option<u64>,
    /// Whether the body ends after `left` bytes, although more may follow.
    pub(super) ends_at_len: bool,
    endpoint: Arc<str>,
    /// How long there may be no progress.
    stall: Duration,
}

/// Where the bytes come from.
pub(super) enum Source {
    Hyper(Incoming),
    /// A connection of the engine itself, until the end of the body.
    Raw(Option<Box<RawBody>>),
}

pub(super) struct RawBody {
    connection: RawConnection,
    progress: BodyProgress,
    /// Bytes of the whole body, if the response tells.
    len: Option<u64>,
    keep: bool,
    pool_key: PoolKey,
    pool: Arc<Pool>,
}

impl RawBody {
    pub(super) fn new(
        connection: RawConnection,
        len: Option<u64>,
        keep: bool,
        pool_key: &PoolKey,
        pool: &Arc<Pool>,
    ) -> Self {
        let (pool_key, pool) = (pool_key.clone(), Arc::clone(pool));
        Self { connection, progress: BodyProgress::default(), len, keep, pool_key, pool }
    }
}

impl HttpBody {
    /// Creates the body of a response that hyper receives.
    pub fn new(incoming: Incoming, endpoint: Arc<str>, stall: Duration) -> Self {
        let source = Source::Hyper(incoming);
        Self { source, rest: Bytes::new(), left: None, ends_at_len: false, endpoint, stall }
    }

    /// Creates the body of a response over a connection of the engine itself.
    pub(super) fn from_raw(raw: RawBody, endpoint: Arc<str>, stall: Duration) -> Self {
        Self {
            left: raw.len,
            source: Source::Raw(Some(Box::new(raw))),
            rest: Bytes::new(),
            ends_at_len: true,
            endpoint,
            stall,
        }
    }

    /// Sets the number of bytes that the body has to have, if that is known. `is_cut`: more may follow, which nobody
    /// wants.
    pub(super) fn with_len(mut self, len: Option<u64>, is_cut: bool) -> Self {
        if let (Some(len), Source::Raw(Some(raw))) = (len, &mut self.source) {
            // Otherwise more follows than was requested.
            raw.keep &= raw.len == Some(len);
        }
        self.left = len.or(self.left);
        self.ends_at_len |= is_cut;
        self.end_if_done();
        self
    }

    /// Returns the connection to the pool once the whole body was read.
    fn end_if_done(&mut self) {
        if self.left == Some(0)
            && let Source::Raw(raw) = &mut self.source
            && let Some(raw) = raw.take()
            && raw.keep
        {
            raw.pool.keep(&raw.pool_key, raw.connection);
        }
    }

    /// Moves bytes from one of our connections to `to`, and returns how many; 0 at the end.
    async fn receive(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, HttpError> {
        let Source::Raw(source) = &mut self.source else { return Ok(0) };
        let Some(raw) = source else { return Ok(0) };
        let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let room = left.min(to.remaining_mut());
        if room == 0 {
            return Ok(0);
        }
        raw.progress.left = self.left;
        let error = match raw.connection.read(&mut to.limit(room), raw.progress).await {
            Ok(0) => match self.left {
                None => {
                    *source = None;
                    return Ok(0);
                }
                Some(left) => {
                    let kind = io::ErrorKind::UnexpectedEof;
                    io::Error::new(kind, format!("closed with {left} bytes missing"))
                }
            },
            Ok(n) => {
                BYTES_RECEIVED.add(n as u64);
                raw.progress.come += n as u64;
                if let Some(left) = &mut self.left {
                    *left -= n as u64;
                }
                self.end_if_done();
                return Ok(n);
            }
            Err(error) => error,
        };
        *source = None;
        Err(HttpError::Transport(self.endpoint.to_string(), error.into()))
    }

    /// Returns the next bytes as they arrived; `None` at the end.
    ///
    /// # Errors
    /// If the response breaks off, or has more or fewer bytes than it should.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        let Source::Hyper(incoming) = &mut self.source else {
            // With capacity: a buffer without takes 64 bytes at a time.
            let room = self.left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
            let mut chunk = BytesMut::with_capacity(room);
            let n = self.receive(&mut (&mut chunk).limit(room)).await?;
            return Ok((n > 0).then(|| chunk.freeze()));
        };
        // Nothing further is waited for: the connection goes back to the pool at once.
        if self.left == Some(0) && (self.ends_at_len || incoming.is_end_stream()) {
            return Ok(None);
        }
        loop {
            let frame = poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await;
            let data = match frame {
                None => match self.left {
                    None | Some(0) => return Ok(None),
                    Some(left) => {
                        return Err(HttpError::Invalid(format!("{left} bytes are missing")));
                    }
                },
                Some(Err(error)) => {
                    return Err(HttpError::Transport(self.endpoint.to_string(), error.into()));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(mut data) if !data.is_empty() => {
                        if let Some(left) = self.left.filter(|_| self.ends_at_len) {
                            data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                        }
                        data
                    }
                    // Trailers, which were not requested.
                    _ => continue,
                },
            };
            BYTES_RECEIVED.add(data.len() as u64);
            if let Some(left) = &mut self.left {
                *left = left.checked_sub(data.len() as u64).ok_or_else(|| {
                    HttpError::Invalid("it has more bytes than it should".to_owned())
                })?;
            }
            return Ok(Some(data));
        }
    }
}

impl HttpBody {
    /// Returns the next bytes as they arrived; `None` at the end.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and if none arrive in the stall timeout.
    pub async fn chunk_in_time(&mut self) -> Result<Option<Bytes>, HttpError> {
        match tokio::time::timeout(self.stall, self.chunk()).await {
            Ok(chunk) => chunk,
            Err(_) => Err(HttpError::Stalled(self.endpoint.to_string(), self.stall)),
        }
    }

    /// Returns how long there may be no progress.
    pub(super) fn stall(&self) -> Duration {
        self.stall
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// If it breaks off, makes no progress in the stall timeout, or has more than `most` bytes.
    pub async fn collect(mut self, most: usize) -> Result<Bytes, HttpError> {
        let promised = self.left.unwrap_or(match &self.source {
            Source::Hyper(incoming) => incoming.size_hint().lower(),
            Source::Raw(_) => 0,
        });
        let promised = usize::try_from(promised).unwrap_or(usize::MAX);
        if promised > most {
            return Err(HttpError::TooLarge(most));
        }
        let mut bytes = BytesMut::with_capacity(promised);
        loop {
            let Some(chunk) = self.chunk_in_time().await? else { return Ok(bytes.freeze()) };
            if bytes.len() + chunk.len() > most {
                return Err(HttpError::TooLarge(most));
            }
            bytes.extend_from_slice(&chunk);
        }
    }
}

impl Body for HttpBody {
    type Error = HttpError;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, HttpError> {
        let room = to.remaining_mut();
        if room == 0 {
            return Ok(0);
        }
        if let Source::Raw(_) = self.source
            && self.rest.is_empty()
        {
            return self.receive(to).await;
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
