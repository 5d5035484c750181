//! The bytes of a response.

use bytes::{Buf, BufMut, Bytes};
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use std::fmt;
use std::future::Future;

/// The bytes of a response, as they arrive. Dropping it ends the request.
pub trait Body: Send {
    /// Why bytes do not arrive.
    type Error;

    /// Adds bytes to `to` as soon as some arrive, and returns how many: 0 at the end, or if there is no room.
    ///
    /// `to` may be TensorFlow's own buffer. A store reads its socket straight into it, and copies nothing. Dropping the
    /// future loses no byte that was added.
    ///
    /// # Errors
    /// If the response breaks off, or is not what its head told. The engine gets the rest with another request. It
    /// detects by itself that nothing arrives for too long.
    fn fill(
        &mut self,
        to: &mut (impl BufMut + Send),
    ) -> impl Future<Output = Result<usize, Self::Error>> + Send;
}

/// A body of a stream of chunks, as most clients return it.
///
/// A store names it `type Body = StreamBody<BoxStream<'static, Result<Bytes, RequestError>>>` and makes it of any stream, whose
/// errors it converts by `map_err`. Each byte is copied once: a body of its own fills TensorFlow's buffer from a socket.
pub struct StreamBody<S> {
    stream: S,
    /// Of the chunk that arrived last.
    rest: Bytes,
}

impl<S> StreamBody<S> {
    /// Creates a body of these chunks.
    pub fn new(stream: S) -> Self {
        Self { stream, rest: Bytes::new() }
    }
}

impl<E> StreamBody<BoxStream<'static, Result<Bytes, E>>> {
    /// Creates a body of these chunks, whatever the type of the stream is.
    pub fn boxed(stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Self {
        Self::new(stream.boxed())
    }
}

impl<S: Stream<Item = Result<Bytes, E>> + Send + Unpin, E: Send> Body for StreamBody<S> {
    type Error = E;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, E> {
        if !to.has_remaining_mut() {
            return Ok(0);
        }
        while !self.rest.has_remaining() {
            match self.stream.next().await {
                Some(chunk) => self.rest = chunk?,
                None => return Ok(0),
            }
        }
        let n = self.rest.len().min(to.remaining_mut());
        to.put(self.rest.split_to(n));
        Ok(n)
    }
}

impl<S> fmt::Debug for StreamBody<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBody").field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, OrKind as _, RequestError, StoreError as _};
    use futures_util::stream;
    use std::io;

    #[tokio::test]
    async fn chunks_of_any_size_fill_a_buffer_of_any_size() {
        let chunks: [&[u8]; 5] = [b"", b"ab", b"cdefgh", b"", b"i"];
        for room in 1..12 {
            let stream =
                stream::iter(chunks).map(|chunk| Ok::<_, RequestError>(Bytes::from_static(chunk)));
            let mut body = StreamBody::boxed(stream);
            let mut read = Vec::new();
            loop {
                let mut to = Vec::new().limit(room);
                let n = body.fill(&mut to).await.unwrap();
                assert_eq!(n, to.get_ref().len());
                read.extend_from_slice(to.get_ref());
                if n == 0 {
                    break;
                }
            }
            assert_eq!(read, b"abcdefghi", "{room}");
            assert_eq!(body.fill(&mut Vec::new().limit(0)).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn an_error_of_the_stream_has_a_kind() {
        let broken = io::Error::new(io::ErrorKind::ConnectionReset, "reset by peer");
        let chunks = stream::iter([Ok(Bytes::from_static(b"ab")), Err(broken)]);
        let mut body = StreamBody::boxed(
            chunks.map(|chunk| chunk.or_kind(|error| ErrorKind::from_io(error.kind()))),
        );
        let mut read = Vec::new();
        assert_eq!(body.fill(&mut read).await.unwrap(), 2);
        let error = body.fill(&mut read).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transient);
        assert_eq!(
            error.into_error("get", &"mem://b/k", 2).to_string(),
            "mem://b/k: get: reset by peer (2 attempts)"
        );
    }
}
