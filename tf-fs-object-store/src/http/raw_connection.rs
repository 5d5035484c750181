//! A connection of the engine itself.

use crate::abi::socket::set_low_water_mark;
use bytes::{Buf, BufMut, BytesMut};
use futures_util::FutureExt as _;
use rustls::pki_types::ServerName;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest TLS record, that of TLS 1.2 with its header (RFC 5246, 6.2.3). Received and undelivered bytes are fewer.
const RECORD: usize = (18 << 10) + 5;
/// The low-water mark of a socket is at most this many bytes, so that a fast connection does not wake its reader for every
/// packet. A larger one saves nothing more.
const HIGHEST_MARK: u64 = 512 << 10;
/// A lower mark is not worth setting.
const LOWEST_MARK: u64 = 32 << 10;
/// How long a read waits for the mark.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long reads of a body do not wait for the mark after a wait in vain: the connection is slow.
const SLOW: Duration = Duration::from_secs(1);

/// A connection.
#[derive(Debug)]
pub(super) struct RawConnection {
    stream: Stream,
    /// Received and not used yet.
    pub(super) received: BytesMut,
    /// Whether it has served a request before.
    pub(super) was_used: bool,
    pub(super) idle_since: Instant,
    /// Bytes that have to be there before its socket counts as readable.
    mark: u64,
    /// When a read last waited for the mark in vain.
    in_vain: Option<Instant>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The progress of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BodyProgress {
    /// Bytes that have come.
    pub(super) come: u64,
    /// Bytes that are to come, if that is known.
    pub(super) left: Option<u64>,
}

impl BodyProgress {
    /// Returns the mark for its next bytes, up to `room`. At most half of what has come: at an even speed no byte is
    /// then late by more than half of its time. At most what is to come, or only time would end the wait.
    fn mark(&self, room: usize, is_tls: bool) -> u64 {
        let undelivered = if is_tls { RECORD as u64 } else { 0 };
        let left = self.left.unwrap_or(0).saturating_sub(undelivered);
        let mark = HIGHEST_MARK.min(self.come / 2).min(left).min(room as u64);
        // In powers of two: each change is a system call.
        if mark < LOWEST_MARK { 1 } else { 1 << mark.ilog2() }
    }
}

impl RawConnection {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self::new(Stream::Plain(stream))
    }

    /// Creates one with TLS, for which the host has to show its certificate.
    pub(super) async fn tls(
        stream: TcpStream,
        host: &str,
        config: &Arc<rustls::ClientConfig>,
    ) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
        Ok(Self::new(Stream::Tls(Box::new(stream))))
    }

    fn new(stream: Stream) -> Self {
        Self {
            stream,
            received: BytesMut::new(),
            was_used: false,
            idle_since: Instant::now(),
            mark: 1,
            in_vain: None,
        }
    }

    /// Ends its use by a request. There may be another.
    pub(super) fn set_down(&mut self) {
        self.set_mark(1);
        // The server may have been busy with others.
        self.in_vain = None;
        self.was_used = true;
        self.idle_since = Instant::now();
    }

    /// Returns the address of the other side.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.stream.socket().peer_addr().ok().map(|address| address.ip())
    }

    /// Returns whether the other side has neither closed it nor sent unrequested bytes, as far as is known.
    pub(super) fn is_open(&mut self) -> bool {
        self.received.is_empty()
            && match &mut self.stream {
                Stream::Plain(stream) => {
                    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
                }
                // It skips the session tickets that arrived. Tokio would let a task that has worked for long wait, whatever arrived.
                Stream::Tls(stream) => {
                    tokio::task::unconstrained(stream.read(&mut [0])).now_or_never().is_none()
                }
            }
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(request).await,
            Stream::Tls(stream) => {
                stream.write_all(request).await?;
                stream.flush().await
            }
        }
    }

    /// Receives at most `most` bytes into `received`, and returns how many; 0 at the end.
    pub(super) async fn receive(&mut self, most: usize) -> io::Result<usize> {
        let mut to = (&mut self.received).limit(most);
        self.stream.read(&mut to).await
    }

    /// Moves bytes of a body to `to`: those received already, or else straight from the socket. Returns 0 at the end.
    pub(super) async fn read(
        &mut self,
        to: &mut (impl BufMut + ?Sized),
        body: BodyProgress,
    ) -> io::Result<usize> {
        let room = to.remaining_mut();
        if self.received.has_remaining() {
            let n = self.received.len().min(room);
            to.put_slice(&self.received[..n]);
            self.received.advance(n);
            return Ok(n);
        }
        let is_slow = self.in_vain.is_some_and(|at| at.elapsed() < SLOW);
        let is_tls = matches!(self.stream, Stream::Tls(_));
        self.set_mark(if is_slow { 1 } else { body.mark(room, is_tls) });
        if self.mark > 1 {
            if let Ok(outcome) = tokio::time::timeout(PATIENCE, self.stream.read(to)).await {
                return outcome;
            }
            self.in_vain = Some(Instant::now());
            self.set_mark(1);
        }
        self.stream.read(to).await
    }

    fn set_mark(&mut self, bytes: u64) {
        if self.mark != bytes && set_low_water_mark(self.stream.socket().as_fd(), bytes as usize) {
            self.mark = bytes;
        }
    }
}

impl Stream {
    async fn read(&mut self, to: &mut (impl BufMut + ?Sized)) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(to).await,
            Self::Tls(stream) => stream.read_buf(to).await,
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::socket::has_low_water_marks;
    use bytes::Bytes;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{AlertDescription, ClientConfig, RootCertStore, ServerConfig};
    use tokio::net::TcpListener;
    use tokio_rustls::{TlsAcceptor, server};

    const MIB: usize = 1 << 20;

    #[test]
    fn a_mark_is_little_of_what_came_and_no_more_than_is_to_come() {
        let mark = |come: u64, left: u64, is_tls| {
            BodyProgress { come: come << 10, left: Some(left << 10) }.mark(MIB, is_tls) >> 10
        };
        assert_eq!([0, 63].map(|come| mark(come, 9999, false)), [0, 0]);
        assert_eq!([64, 200, 9999].map(|come| mark(come, 9999, false)), [32, 64, 512]);
        assert_eq!([31, 32, 255, 512].map(|left| mark(9999, left, false)), [0, 32, 128, 512]);
        assert_eq!([50, 51, 530, 531].map(|left| mark(9999, left, true)), [0, 32, 256, 512]);
        assert_eq!(BodyProgress { come: 1 << 30, left: None }.mark(MIB, false), 1);
        let body = BodyProgress { come: 1 << 30, left: Some(1 << 30) };
        assert_eq!([31, 40, 300].map(|room| body.mark(room << 10, false) >> 10), [0, 32, 256]);
    }

    async fn connection() -> (RawConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (RawConnection::plain(stream), listener.accept().await.unwrap().0)
    }

    /// Reads until so many bytes have come, and counts the reads.
    async fn read(connection: &mut RawConnection, body: &mut BodyProgress, until: usize) -> usize {
        let mut bytes = BytesMut::with_capacity(MIB);
        for count in 1.. {
            bytes.clear();
            let n = connection.read(&mut (&mut bytes).limit(MIB), *body).await.unwrap() as u64;
            assert!(n > 0);
            body.come += n;
            *body.left.as_mut().unwrap() -= n;
            if body.come >= until as u64 {
                return count;
            }
        }
        unreachable!("it returns")
    }

    /// Returns how many reads take 4 MiB that come in 4 KiB at a time, and whether it was too slow to wait.
    async fn reads_of_a_fast_body() -> (usize, bool) {
        let (mut connection, mut peer) = connection().await;
        let sends = async move {
            for _ in 0..1024 {
                peer.write_all(&[7; 4096]).await.unwrap();
                tokio::task::yield_now().await;
            }
            peer
        };
        let mut body = BodyProgress { left: Some(4 * MIB as u64), ..BodyProgress::default() };
        let (_peer, reads) = tokio::join!(sends, read(&mut connection, &mut body, 4 * MIB));
        let is_slow = connection.in_vain.is_some();
        // The head of the next response is not made to wait, and its body does not count as slow.
        connection.set_down();
        assert!(connection.mark == 1 && connection.in_vain.is_none());
        (reads, is_slow)
    }

    #[tokio::test]
    async fn a_fast_body_is_read_in_large_pieces() {
        // On a busy machine one may look slow.
        for _ in 0..20 {
            let (reads, is_slow) = reads_of_a_fast_body().await;
            assert!(is_slow || reads < 300 || !has_low_water_marks(), "{reads}");
            if !is_slow {
                return;
            }
        }
        panic!("no body was fast");
    }

    #[tokio::test]
    async fn a_slow_body_is_read_completely() {
        let (mut connection, mut peer) = connection().await;
        let mut body = BodyProgress { left: Some(8 * MIB as u64), ..BodyProgress::default() };
        let sends = async { peer.write_all(&vec![7; MIB]).await.unwrap() };
        tokio::join!(sends, read(&mut connection, &mut body, MIB));
        for more in 1..=20 {
            peer.write_all(&[7; 10]).await.unwrap();
            let read = read(&mut connection, &mut body, MIB + 10 * more);
            tokio::time::timeout(Duration::from_secs(20), read).await.expect("it was sent");
        }
        assert_eq!(connection.in_vain.is_some(), has_low_water_marks());
    }

    const HOST: &str = "localhost";

    /// Returns both ends of a connection with TLS, or why there is none.
    async fn tls(
        is_trusted: bool,
    ) -> (io::Result<RawConnection>, io::Result<server::TlsStream<TcpStream>>) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        if is_trusted {
            roots.add(cert.der().clone()).unwrap();
        }
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Arc::new(client);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (peer, _) = listener.accept().await.unwrap();
        let accepted = TlsAcceptor::from(Arc::new(server)).accept(peer);
        tokio::join!(RawConnection::tls(socket, HOST, &client), accepted)
    }

    async fn receive(from: &mut RawConnection) -> io::Result<Bytes> {
        from.receive(99).await?;
        Ok(from.received.split().freeze())
    }

    #[tokio::test]
    async fn an_idle_tls_connection_is_open_until_something_arrives() {
        let (client, server) = tls(true).await;
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        for _ in 0..2 {
            // The session tickets come with the first response.
            client.send(b"request").await.unwrap();
            server.read_exact(&mut [0; 7]).await.unwrap();
            server.write_all(b"body").await.unwrap();
            server.flush().await.unwrap();
            assert_eq!(receive(&mut client).await.unwrap(), "body");
            assert!(client.is_open());
        }
        server.write_all(b"unrequested").await.unwrap();
        server.flush().await.unwrap();
        client.stream.socket().readable().await.unwrap();
        assert!(!client.is_open());
    }

    #[tokio::test]
    async fn the_end_of_tls_is_an_end_only_if_it_is_announced() {
        for is_announced in [true, false] {
            let (client, server) = tls(true).await;
            let (mut client, mut server) = (client.unwrap(), server.unwrap());
            server.write_all(b"body").await.unwrap();
            match is_announced {
                true => server.shutdown().await.unwrap(),
                false => server.flush().await.unwrap(),
            }
            drop(server);
            assert_eq!(receive(&mut client).await.unwrap(), "body");
            let end = receive(&mut client).await.map_err(|error| error.kind());
            let cut_off = Err(io::ErrorKind::UnexpectedEof);
            assert_eq!(end, if is_announced { Ok(Bytes::new()) } else { cut_off });
            assert!(!client.is_open());
        }
    }

    #[tokio::test]
    async fn a_host_learns_that_its_certificate_is_not_trusted() {
        let (client, server) = tls(false).await;
        let cause = |error: io::Error| error.downcast::<rustls::Error>().unwrap();
        let error = cause(client.unwrap_err());
        assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error:?}");
        let alert = rustls::Error::AlertReceived(AlertDescription::UnknownCA);
        assert_eq!(cause(server.unwrap_err()), alert);
    }
}
