//! A session of SFTP: requests and their replies over one channel of SSH, many at a time.

use super::packet::{Fields, LARGEST, Request, VERSION, kind};
use super::ssh::{self, Connection, Login};
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::StoreError as _;
use tf_fs_object_store::http::HttpError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

/// Bytes of a read or a write that every server takes.
const USUAL: u64 = 32 << 10;
/// The most bytes of a read or a write, whatever a server takes.
const MOST: u64 = 256 << 10;
/// Requests that wait to be sent.
const QUEUE: usize = 64;
/// A session that has not replied for so long is not used any more.
const DISTRUST: Duration = Duration::from_secs(10);

/// A packet that a server sent: its type and its fields.
pub(super) type Reply = (u8, Fields);

/// A session.
pub(super) struct Session {
    outgoing: mpsc::Sender<(Bytes, Bytes)>,
    pending: Arc<Pending>,
    next: AtomicU32,
    is_suspect: AtomicBool,
    endpoint: String,
    /// Whether a rename can replace a file.
    pub(super) replaces: bool,
    pub(super) max_read: u32,
    pub(super) max_write: u32,
    /// Ends with the session.
    _connection: Connection,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The requests that wait for their replies; `None` once the channel has ended.
#[derive(Default)]
struct Pending(Mutex<Option<HashMap<u32, oneshot::Sender<Reply>>>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u32, oneshot::Sender<Reply>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its reply.
struct Waiting<'a> {
    session: &'a Session,
    id: u32,
    since: Instant,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let is_unanswered =
            self.session.pending.lock().as_mut().is_some_and(|all| all.remove(&self.id).is_some());
        if is_unanswered && self.since.elapsed() >= DISTRUST {
            self.session.is_suspect.store(true, Ordering::Relaxed);
        }
    }
}

impl Session {
    /// Connects to a server, logs in and begins a session.
    pub(super) async fn new(login: &Login) -> Result<Self, HttpError> {
        let (connection, stream) = ssh::connect(login).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let ended = |error: io::Error| HttpError::Transport(login.endpoint.clone(), error.into());
        let hello = [&[0, 0, 0, 5, kind::INIT], &VERSION.to_be_bytes()[..]].concat();
        writer.write_all(&hello).await.map_err(ended)?;
        writer.flush().await.map_err(ended)?;
        let (kind, mut fields) = receive(&mut reader).await.map_err(ended)?;
        if kind != kind::VERSION || fields.number()? < VERSION {
            return Err(HttpError::invalid("the server does not speak version 3 of SFTP"));
        }
        let (mut replaces, mut tells_limits) = (false, false);
        while !fields.is_empty() {
            let (name, version) = (fields.bytes()?, fields.bytes()?);
            replaces |= &*name == b"posix-rename@openssh.com" && &*version == b"1";
            tells_limits |= &*name == b"limits@openssh.com" && &*version == b"1";
        }
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending(Mutex::new(Some(HashMap::new()))));
        tokio::spawn(send_all(writer, queue));
        tokio::spawn(receive_all(reader, Arc::clone(&pending)));
        let mut session = Self {
            outgoing,
            pending,
            next: AtomicU32::new(1),
            is_suspect: AtomicBool::new(false),
            endpoint: login.endpoint.clone(),
            replaces,
            max_read: USUAL as u32,
            max_write: USUAL as u32,
            _connection: connection,
        };
        if tells_limits {
            let request = Request::new(kind::EXTENDED).text(b"limits@openssh.com");
            if let (kind::EXTENDED_REPLY, mut limits) = session.call(request, Bytes::new()).await? {
                let (_, read, write) = (limits.long()?, limits.long()?, limits.long()?);
                // 0: the server does not tell.
                let at_most = |limit: u64| if limit == 0 { USUAL } else { limit.min(MOST) };
                session.max_read = at_most(read) as u32;
                session.max_write = at_most(write) as u32;
            }
        }
        Ok(session)
    }

    /// Returns how many requests wait for a reply; `None` if no further one should be made.
    pub(super) fn load(&self) -> Option<usize> {
        let is_trusted = !self.is_suspect.load(Ordering::Relaxed);
        self.pending.lock().as_ref().filter(|_| is_trusted).map(HashMap::len)
    }

    /// Makes a request, which ends with the bytes of `after`, and returns its reply.
    pub(super) async fn call(&self, request: Request, after: Bytes) -> Result<Reply, HttpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        match self.pending.lock().as_mut() {
            Some(all) => all.insert(id, sender),
            None => return Err(self.gone()),
        };
        let _waiting = Waiting { session: self, id, since: Instant::now() };
        let packet = (request.finish(id, after.len()), after);
        self.outgoing.send(packet).await.map_err(|_| self.gone())?;
        receiver.await.map_err(|_| self.gone())
    }

    /// Makes a request whose reply does not matter, if there is room for it.
    pub(super) fn call_and_forget(&self, request: Request) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // Otherwise the server closes what is open when the connection ends.
        let _ = self.outgoing.try_send((request.finish(id, 0), Bytes::new()));
    }

    fn gone(&self) -> HttpError {
        let error = io::Error::new(io::ErrorKind::ConnectionReset, "the connection of SSH ended");
        HttpError::Transport(self.endpoint.clone(), error.into())
    }
}

async fn send_all(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<(Bytes, Bytes)>) {
    while let Some((request, after)) = queue.recv().await {
        let sent = async {
            writer.write_all(&request).await?;
            writer.write_all(&after).await
        };
        if sent.await.is_err() {
            break;
        }
    }
    // The reading half sees the end.
    let _ = writer.shutdown().await;
}

async fn receive_all(mut reader: impl AsyncRead + Unpin, pending: Arc<Pending>) {
    while let Ok((kind, mut fields)) = receive(&mut reader).await {
        let Ok(id) = fields.number() else { break };
        let waiting = pending.lock().as_mut().and_then(|all| all.remove(&id));
        if let Some(waiting) = waiting {
            // Nobody waits any more.
            let _ = waiting.send((kind, fields));
        }
    }
    pending.lock().take();
}

/// Receives a packet.
async fn receive(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Reply> {
    let len = reader.read_u32().await? as usize;
    if !(1..=LARGEST).contains(&len) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a packet of SFTP has no valid length",
        ));
    }
    let kind = reader.read_u8().await?;
    let mut bytes = BytesMut::zeroed(len - 1);
    reader.read_exact(&mut bytes).await?;
    Ok((kind, Fields(bytes.freeze())))
}
