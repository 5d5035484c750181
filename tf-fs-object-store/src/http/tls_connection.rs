//! A connection with TLS, whose records are decrypted in the buffer that received them.
//!
//! It uses the unbuffered interface of rustls: the usual one copies received bytes into its own buffer, and decrypts
//! all of it before the first byte is read.

use bytes::{Buf, BufMut, BytesMut};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus,
};
use rustls::{ClientConfig, Error};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The most bytes taken from a socket at once.
const INCOMING: usize = 256 << 10;
/// The longest record, that of TLS 1.2 with its header (RFC 5246, 6.2.3). Received and undelivered bytes are fewer.
pub(super) const RECORD: usize = (18 << 10) + 5;
/// A connection with TLS.
pub(super) struct TlsConnection {
    pub(super) socket: TcpStream,
    tls: UnbufferedClientConnection,
    /// Received, but not decrypted yet.
    incoming: BytesMut,
    /// Decrypted, but without room for it.
    rest: BytesMut,
    /// Encrypted, but not sent yet.
    outgoing: BytesMut,
    /// How it ended. Earlier bytes are delivered first.
    end: Option<Result<(), Error>>,
}

/// The state of a connection once everything received is decrypted, or the room is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Handshake,
    Open,
    Closed,
}

impl std::fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsConnection").field("socket", &self.socket).finish_non_exhaustive()
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Adds a handshake message, or an alert.
fn encode<T>(mut message: EncodeTlsData<'_, T>, to: &mut BytesMut) -> Result<(), Error> {
    let start = to.len();
    // It tells its length only when the buffer is too small.
    let mut encoded = message.encode(&mut []);
    if let Err(EncodeError::InsufficientSize(size)) = &encoded {
        to.resize(start + size.required_size, 0);
        encoded = message.encode(&mut to[start..]);
    }
    encoded.map(drop).map_err(|error| Error::General(error.to_string()))
}

fn ended(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

impl TlsConnection {
    /// Performs the TLS handshake with the host, which has to show its certificate.
    pub(super) async fn connect(
        socket: TcpStream,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name).map_err(invalid)?;
        let (incoming, rest, outgoing) = Default::default();
        let mut this = Self { socket, tls, incoming, rest, outgoing, end: None };
        loop {
            let state = this.decrypt(&mut BytesMut::new().limit(0));
            // Or an alert, so that the host learns why the handshake ends.
            let sent = this.flush().await;
            match state.map_err(invalid)? {
                State::Open => {
                    this.set_down();
                    return sent.map(|()| this);
                }
                State::Handshake => sent?,
                State::Closed => return Err(ended("closed in the handshake of TLS")),
            }
            if this.receive(RECORD).await? == 0 {
                return Err(ended("closed in the handshake of TLS"));
            }
        }
    }

    /// Sends all of `bytes`, to a host that has said nothing since its last response.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Session tickets, or the end, may have arrived.
        self.make_room();
        match self.socket.try_read_buf(&mut (&mut self.incoming).limit(RECORD)) {
            Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        let state = self.decrypt(&mut BytesMut::new().limit(0)).map_err(invalid)?;
        let unasked = || io::Error::new(io::ErrorKind::BrokenPipe, "a response before the request");
        if state != State::Open || !self.rest.is_empty() {
            return Err(unasked());
        }
        let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.incoming);
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else {
            return Err(unasked());
        };
        let start = self.outgoing.len();
        let mut needed = bytes.len() + RECORD;
        let n = loop {
            self.outgoing.resize(start + needed, 0);
            match traffic.encrypt(bytes, &mut self.outgoing[start..]) {
                Ok(n) => break n,
                Err(EncryptError::InsufficientSize(size)) => needed = size.required_size,
                Err(error) => return Err(io::Error::other(error)),
            }
        };
        self.outgoing.truncate(start + n);
        self.incoming.advance(discard);
        self.flush().await
    }

    /// Moves decrypted bytes to `to`, and returns how many; 0 at the end.
    pub(super) async fn read(&mut self, to: &mut (impl BufMut + ?Sized)) -> io::Result<usize> {
        let room = to.remaining_mut();
        let n = room.min(self.rest.len());
        to.put_slice(&self.rest[..n]);
        self.rest.advance(n);
        if n > 0 && !to.has_remaining_mut() {
            return Ok(n);
        }
        loop {
            let state = self.decrypt(to);
            // First deliver what there is: a reader that goes away loses nothing.
            let n = room - to.remaining_mut();
            if n > 0 || room == 0 {
                return Ok(n);
            }
            let sent = self.flush().await;
            if state.map_err(invalid)? == State::Closed {
                return Ok(0);
            }
            sent?;
            if self.receive(INCOMING).await? == 0 {
                return Err(ended("closed without the end that TLS prescribes"));
            }
        }
    }

    /// Returns whether nothing has come since the last body, and more may come.
    pub(super) fn is_open(&self) -> bool {
        self.rest.is_empty() && self.end.is_none()
    }

    /// Frees the memory of a body.
    pub(super) fn set_down(&mut self) {
        for buffer in [&mut self.incoming, &mut self.rest, &mut self.outgoing] {
            if buffer.is_empty() {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Receives at most `most` bytes into `incoming`, and returns how many; 0 at the end.
    async fn receive(&mut self, most: usize) -> io::Result<usize> {
        self.make_room();
        self.socket.read_buf(&mut (&mut self.incoming).limit(most)).await
    }

    /// Makes room in `incoming` for at least half of what a read of a body takes, and mostly for all of it.
    fn make_room(&mut self) {
        if self.incoming.capacity() == 0 {
            self.incoming = BytesMut::with_capacity(INCOMING + RECORD);
        }
        // Moves the beginning of a record to the front where less room is left. To reserve all of it would sometimes
        // not fit, and allocate twice as much.
        self.incoming.reserve(INCOMING / 2);
    }

    async fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            if self.socket.write_buf(&mut self.outgoing).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Decrypts received bytes into `to` until it is full. Afterwards there may be bytes to [`flush`](Self::flush).
    fn decrypt(&mut self, to: &mut (impl BufMut + ?Sized)) -> Result<State, Error> {
        if let Some(end) = &self.end {
            return end.clone().map(|()| State::Closed);
        }
        let outcome = self.process(to);
        match &outcome {
            Ok(State::Closed) => self.end = Some(Ok(())),
            Ok(_) => {}
            Err(error) => self.end = Some(Err(error.clone())),
        }
        outcome
    }

    fn process(&mut self, to: &mut (impl BufMut + ?Sized)) -> Result<State, Error> {
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.tls.process_tls_records(&mut self.incoming);
            let state = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        let fits = record.payload.len().min(to.remaining_mut());
                        to.put_slice(&record.payload[..fits]);
                        self.rest.extend_from_slice(&record.payload[fits..]);
                    }
                    // Further bytes would be decrypted into our own memory.
                    (!to.has_remaining_mut()).then_some(State::Open)
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, &mut self.outgoing)?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    // It is in `outgoing`.
                    data.done();
                    None
                }
                Ok(ConnectionState::BlockedHandshake) => Some(State::Handshake),
                Ok(ConnectionState::WriteTraffic(_)) => Some(State::Open),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(State::Closed),
                Ok(state) => return Err(Error::General(format!("{state:?} is not expected"))),
                Err(error) => {
                    self.incoming.advance(discard);
                    // Bytes to send come first: the alert, if there is one. A further call could be one too many.
                    let UnbufferedStatus { state, .. } =
                        self.tls.process_tls_records(&mut self.incoming);
                    if let Ok(ConnectionState::EncodeTlsData(alert)) = state {
                        encode(alert, &mut self.outgoing)?;
                    }
                    return Err(error);
                }
            };
            self.incoming.advance(discard);
            if let Some(state) = state {
                return Ok(state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{AlertDescription, ServerConfig, SupportedProtocolVersion, version};
    use std::time::Duration;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::server::TlsStream;

    const HOST: &str = "localhost";

    /// Returns both ends of a connection, or why there is none.
    async fn connect(
        version: &'static SupportedProtocolVersion,
        is_trusted: bool,
    ) -> (io::Result<TlsConnection>, io::Result<TlsStream<TcpStream>>) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
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
        tokio::join!(TlsConnection::connect(socket, HOST, &client), accepted)
    }

    async fn both(
        version: &'static SupportedProtocolVersion,
    ) -> (TlsConnection, TlsStream<TcpStream>) {
        let (client, server) = connect(version, true).await;
        (client.unwrap(), server.unwrap())
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * i / 251) as u8).collect()
    }

    /// Reads into so much room at a time, in turns, until so many bytes have come.
    async fn read(from: &mut TlsConnection, rooms: &[usize], until: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for room in rooms.iter().cycle() {
            let room = *room.min(&(until - all.len()));
            let mut to = BytesMut::with_capacity(room);
            let n = from.read(&mut (&mut to).limit(room)).await.unwrap();
            assert!(n > 0 && n <= room && n == to.len());
            assert!(from.incoming.capacity() <= INCOMING + RECORD);
            all.extend_from_slice(&to);
            if all.len() == until {
                break;
            }
        }
        all
    }

    #[tokio::test]
    async fn what_is_sent_arrives_whatever_the_room() {
        for version in [&version::TLS12, &version::TLS13] {
            let (mut client, mut server) = both(version).await;
            for len in [1, 16 << 10, 2_000_000] {
                // More than a record, in both directions.
                let request = bytes(len / 40 + 1);
                let send = async {
                    client.send(&request).await.unwrap();
                    read(&mut client, &[1, 70_000, 16_384, 300_000, 77], len).await
                };
                let answer = async {
                    let mut received = vec![0; len / 40 + 1];
                    server.read_exact(&mut received).await.unwrap();
                    for piece in bytes(len).chunks(33_333) {
                        server.write_all(piece).await.unwrap();
                        server.flush().await.unwrap();
                    }
                    received
                };
                let (received, sent) = tokio::join!(send, answer);
                assert!(sent == request && received == bytes(len), "{version:?}: {len}");
                client.set_down();
                assert!(client.is_open());
                assert_eq!([&client.incoming, &client.rest].map(BytesMut::capacity), [0; 2]);
            }
        }
    }

    #[tokio::test]
    async fn what_comes_unasked_is_no_response() {
        for is_received in [true, false] {
            let (mut client, mut server) = both(&version::TLS13).await;
            client.send(b"request").await.unwrap();
            server.write_all(b"body").await.unwrap();
            if is_received {
                server.write_all(b"more").await.unwrap();
            }
            server.flush().await.unwrap();
            assert_eq!(read(&mut client, &[4], 4).await, b"body");
            if !is_received {
                server.write_all(b"more").await.unwrap();
                server.flush().await.unwrap();
            }
            // It has arrived, whether or not it was taken from the socket.
            if client.incoming.is_empty() && client.rest.is_empty() {
                client.socket.readable().await.unwrap();
            }
            let error = client.send(b"request").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[tokio::test]
    async fn keys_may_be_changed_under_way() {
        let (mut client, mut server) = both(&version::TLS13).await;
        for _ in 0..3 {
            // It requests new keys of this side, too.
            server.get_mut().1.refresh_traffic_keys().unwrap();
            server.write_all(&bytes(100_000)).await.unwrap();
            assert_eq!(read(&mut client, &[7_000], 100_000).await, bytes(100_000));
            client.send(b"next").await.unwrap();
            let mut received = [0; 4];
            server.read_exact(&mut received).await.unwrap();
            assert_eq!(&received, b"next");
        }
    }

    #[tokio::test]
    async fn an_end_is_one_only_if_it_is_said() {
        for is_said in [true, false] {
            let (mut client, mut server) = both(&version::TLS13).await;
            server.write_all(b"body").await.unwrap();
            if is_said {
                server.shutdown().await.unwrap();
            } else {
                server.flush().await.unwrap();
            }
            drop(server);
            assert_eq!(read(&mut client, &[10], 4).await, b"body");
            for _ in 0..2 {
                let end = client.read(&mut BytesMut::new()).await.map_err(|error| error.kind());
                assert_eq!(end, if is_said { Ok(0) } else { Err(io::ErrorKind::UnexpectedEof) });
            }
        }
    }

    #[tokio::test]
    async fn bytes_before_a_damaged_record_are_delivered_once() {
        let (mut client, mut server) = both(&version::TLS13).await;
        server.write_all(b"body").await.unwrap();
        server.flush().await.unwrap();
        let damaged = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
        server.get_mut().0.write_all(&damaged).await.unwrap();
        // Both are there.
        let all = async { while client.socket.peek(&mut [0; 99]).await.unwrap() < 60 {} };
        tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
        assert_eq!(read(&mut client, &[10], 4).await, b"body");
        for _ in 0..2 {
            let error = client.read(&mut BytesMut::new()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        assert!(!client.is_open());
    }

    #[tokio::test]
    async fn a_host_learns_that_its_certificate_is_not_trusted() {
        let (client, server) = connect(&version::TLS13, false).await;
        let error = client.unwrap_err();
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
        assert!(matches!(cause, Some(Error::InvalidCertificate(_))), "{error:?}");
        let error = server.unwrap_err();
        let alert = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
        assert_eq!(alert, Some(&Error::AlertReceived(AlertDescription::UnknownCA)));
    }
}
