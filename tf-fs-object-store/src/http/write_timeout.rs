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
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    const PATIENCE: Duration = Duration::from_millis(300);

    async fn connection() -> (TokioIo<WriteTimeout>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (peer, _) = listener.accept().await.unwrap();
        (TokioIo::new(WriteTimeout::new(TokioIo::new(stream), false, PATIENCE)), peer)
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_left() {
        let (mut connection, _peer) = connection().await;
        let start = Instant::now();
        let error = connection.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!((PATIENCE..PATIENCE * 10).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_slow_peer_is_waited_for() {
        let (mut connection, mut peer) = connection().await;
        let body = vec![7; 32 << 20];
        let start = Instant::now();
        let slow = async {
            let mut taken = 0;
            let mut bytes = vec![0; 8 << 20];
            while taken < body.len() {
                tokio::time::sleep(PAUSE).await;
                let n = poll_fn(|_| Poll::Ready(peer.try_read(&mut bytes))).await.unwrap_or(0);
                taken += n;
            }
        };
        const PAUSE: Duration = Duration::from_millis(100);
        let write = async { connection.write_all(&body).await.unwrap() };
        tokio::join!(write, slow);
        assert!(start.elapsed() > PATIENCE, "{:?}", start.elapsed());
        drop(connection);
        assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
    }
}
