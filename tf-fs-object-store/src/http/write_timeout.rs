//! A connection that breaks when its peer accepts no more bytes.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A connection of any kind.
trait Stream: Read + Write + Connection + Send + Unpin {}

impl<S: Read + Write + Connection + Send + Unpin> Stream for S {}

/// A connection. Writing fails once no byte could be written for `patience`.
///
/// When a request is dropped, hyper closes its connection only after it has sent the bytes on their way: never, if the
/// peer does not accept them.
pub struct WriteTimeout {
    stream: Box<dyn Stream>,
    is_proxied: bool,
    patience: Duration,
    /// When patience ends; `None` while the peer accepts bytes.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    /// Wraps a connection. With `is_proxied`, requests name their host, since a proxy is at the other end.
    pub(super) fn new(
        stream: impl Read + Write + Connection + Send + Unpin + 'static,
        is_proxied: bool,
        patience: Duration,
    ) -> Self {
        Self { stream: Box::new(stream), is_proxied, patience, deadline: None }
    }

    fn guard<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut dyn Stream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(outcome) = write(Pin::new(&mut *self.stream), context) {
            self.deadline = None;
            return Poll::Ready(outcome);
        }
        let patience = self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(deadline.as_mut().poll(context));
        let kind = io::ErrorKind::TimedOut;
        Poll::Ready(Err(io::Error::new(kind, format!("no byte was taken for {patience:?}"))))
    }
}

impl Read for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_read(context, to)
    }
}

impl Write for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.guard(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.guard(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.guard(context, |stream, context| stream.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.guard(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connection for WriteTimeout {
    fn connected(&self) -> Connected {
        let connected = self.stream.connected();
        if self.is_proxied { connected.proxy(true) } else { connected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::Instant;

    const PATIENCE: Duration = Duration::from_millis(300);
    /// Bytes between the two ends.
    const ROOM: usize = 64 << 10;

    /// One end of a connection in memory: with a paused clock no load of the machine changes when it accepts bytes.
    struct Pipe(TokioIo<DuplexStream>);

    impl Read for Pipe {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            to: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, to)
        }
    }

    impl Write for Pipe {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    impl Connection for Pipe {
        fn connected(&self) -> Connected {
            Connected::new()
        }
    }

    fn connection() -> (TokioIo<WriteTimeout>, DuplexStream) {
        let (stream, peer) = tokio::io::duplex(ROOM);
        (TokioIo::new(WriteTimeout::new(Pipe(TokioIo::new(stream)), false, PATIENCE)), peer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_left() {
        let (mut connection, _peer) = connection();
        let start = Instant::now();
        let error = connection.write_all(&[0; 2 * ROOM]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!((PATIENCE..PATIENCE * 2).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_is_waited_for() {
        let (mut connection, mut peer) = connection();
        let start = Instant::now();
        let slow = async {
            let mut bytes = [0; ROOM];
            for _ in 0..8 {
                tokio::time::sleep(PATIENCE * 2 / 3).await;
                peer.read_exact(&mut bytes).await.unwrap();
            }
        };
        let write = async { connection.write_all(&[7; 8 * ROOM]).await.unwrap() };
        tokio::join!(write, slow);
        assert!(start.elapsed() > PATIENCE * 4, "{:?}", start.elapsed());
        drop(connection);
        assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
    }
}
