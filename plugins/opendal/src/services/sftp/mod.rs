//! SFTP. OpenDAL's client starts a process of `ssh` for each connection; this one speaks the protocol over `russh`.

mod packet;
mod session;
mod ssh;

use crate::place::Place;
use crate::service::{Body, Done, Entry, Service, Sink, failure, missing};
use crate::settings::Settings;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use packet::{Fields, Request, kind, open, status};
use session::{Reply, Session};
use ssh::Login;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    ErrorKind, GetHead, GetOptions, ObjectMeta, Publication, StoreError as _, StreamBody,
    WriteLimits,
};

/// Bytes of one file that are on their way at a time, in either direction.
const IN_FLIGHT: u32 = 1 << 20;
/// Requests that one connection has before another one is made.
const BUSY: usize = 16;
/// Symbolic links of one directory that are looked up at a time.
const LINKS: usize = 16;

/// A directory of a server.
#[derive(Debug)]
pub(super) struct Sftp {
    /// What paths begin with: empty for the user's home.
    root: String,
    login: Login,
    sessions: Mutex<Vec<Arc<Session>>>,
    /// Held while a connection is made.
    connecting: tokio::sync::Mutex<()>,
    max_sessions: usize,
}

impl Sftp {
    pub(super) fn new(place: &Place, settings: &Settings) -> Self {
        let root = place.root.trim_end_matches('/');
        let root = match root.strip_prefix("/~") {
            Some("") => String::new(),
            Some(rest) if rest.starts_with('/') => format!("{}/", &rest[1..]),
            _ => format!("{root}/"),
        };
        Self {
            root,
            login: Login::new(place, settings),
            sessions: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            max_sessions: settings.connections,
        }
    }

    fn path(&self, path: &str) -> Vec<u8> {
        match format!("{}{path}", self.root) {
            path if path.is_empty() => b".".to_vec(),
            path => path.into_bytes(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session that has the least to do, and whether it is enough for one more request.
    fn idlest(&self) -> Option<(Arc<Session>, bool)> {
        let mut sessions = self.sessions();
        sessions.retain(|session| session.load().is_some());
        let is_full = sessions.len() >= self.max_sessions;
        let idlest = sessions.iter().min_by_key(|session| session.load())?;
        Some((Arc::clone(idlest), is_full || idlest.load().is_some_and(|load| load < BUSY)))
    }

    async fn session(&self) -> Result<Arc<Session>, HttpError> {
        if let Some((session, true)) = self.idlest() {
            return Ok(session);
        }
        let connecting = match self.connecting.try_lock() {
            Ok(connecting) => connecting,
            // Another request makes a connection: one that is busy will do.
            Err(_) => match self.idlest() {
                Some((session, _)) => return Ok(session),
                None => self.connecting.lock().await,
            },
        };
        if let Some((session, true)) = self.idlest() {
            return Ok(session);
        }
        let new = Arc::new(Session::new(&self.login).await?);
        self.sessions().push(Arc::clone(&new));
        drop(connecting);
        Ok(new)
    }

    /// Makes a request of one path that only has a status.
    async fn simple(&self, kind: u8, path: &str) -> Result<(), HttpError> {
        let mut request = Request::new(kind).text(&self.path(path));
        if kind == kind::MKDIR {
            request = request.number(0);
        }
        done(self.session().await?.call(request, Bytes::new()).await?)
    }

    async fn stat_at(session: &Session, path: &[u8]) -> Result<Option<Entry>, HttpError> {
        let request = Request::new(kind::STAT).text(path);
        match session.call(request, Bytes::new()).await? {
            (kind::ATTRS, mut fields) => Ok(Some(fields.attributes()?.entry())),
            reply => match refused(reply) {
                error if error.kind() == ErrorKind::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl Service for Sftp {
    fn write_limits(&self) -> Option<WriteLimits> {
        Some(WriteLimits::new(Publication::Rename).without_conditions().with_upload())
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let path = self.path(options.key);
            let file = Open::new(self.session().await?, &path, open::READ).await?;
            let range = options.range;
            let most = u64::from(file.session.max_read);
            // The beginning is requested before it is known whether it is there: most files are small.
            let (attributes, first) =
                tokio::join!(file.attributes(), file.read(range.start, range.len().min(most)));
            let found = attributes?.entry();
            if found.is_directory {
                return Err(missing());
            }
            let size = found.meta.size.unwrap_or(0);
            let end = range.end.min(size);
            let first = if range.start < end { first? } else { Bytes::new() };
            let head = GetHead::new(size, end.max(range.start.min(size)))
                .with_modified(found.meta.modified);
            let (start, at_once) = (range.start + first.len() as u64, in_flight(most as u32));
            let rest = stream::iter((start..end).step_by(most as usize))
                .map(move |at| {
                    let file = file.clone();
                    async move { file.read_all(at, most.min(end - at)).await }
                })
                .buffered(at_once);
            let beginning = stream::iter((!first.is_empty()).then_some(Ok(first)));
            Ok((Some(head), StreamBody::boxed(beginning.chain(rest))))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move { Self::stat_at(&*self.session().await?, &self.path(path)).await })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(async move {
            let session = self.session().await?;
            let request = Request::new(kind::OPENDIR).text(&self.path(path));
            let handle = handle(session.call(request, Bytes::new()).await?)?;
            let directory = Open(Arc::new(Opened::new(session, handle)));
            let (mut entries, mut links) = (Vec::new(), Vec::new());
            loop {
                let request = Request::new(kind::READDIR).text(&directory.handle);
                let mut names = match directory.session.call(request, Bytes::new()).await? {
                    (kind::NAME, names) => names,
                    reply => match status_of(&reply)? {
                        status::EOF => break,
                        _ => return Err(refused(reply)),
                    },
                };
                for _ in 0..names.number()? {
                    let name = names.bytes()?;
                    names.bytes()?;
                    let attributes = names.attributes()?;
                    let Ok(name) = String::from_utf8(name.to_vec()) else {
                        log::debug!(
                            "{}: a name that is not UTF-8 is left out",
                            self.login.endpoint
                        );
                        continue;
                    };
                    match attributes.is_link() {
                        true => links.push(name),
                        false => entries.push((name, attributes.entry())),
                    }
                }
            }
            let session = &directory.session;
            let links = stream::iter(links).map(|name| async move {
                let target = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                let found = Self::stat_at(session, &self.path(&target)).await?;
                Ok::<_, HttpError>(found.map(|entry| (name, entry)))
            });
            let found: Vec<_> = links.buffer_unordered(LINKS).try_collect().await?;
            entries.extend(found.into_iter().flatten());
            Ok(entries)
        })
    }

    fn create_dir<'a>(&'a self, path: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            match self.simple(kind::MKDIR, path).await {
                // Servers do not say that something is there.
                Err(error) if error.kind() == ErrorKind::Permanent => {
                    match self.stat(path).await? {
                        Some(_) => Err(failure(ErrorKind::Precondition, "something is there")),
                        None => Err(error),
                    }
                }
                done => done,
            }
        })
    }

    fn delete<'a>(&'a self, path: &'a str, is_directory: bool) -> Done<'a, ()> {
        let kind = if is_directory { kind::RMDIR } else { kind::REMOVE };
        Box::pin(self.simple(kind, path))
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            let session = self.session().await?;
            let (src, dst) = (self.path(from), self.path(to));
            // rclone would replace a directory with all that is in it.
            if !is_directory
                && Self::stat_at(&session, &dst).await?.is_some_and(|found| found.is_directory)
            {
                return Err(failure(ErrorKind::Precondition, "a directory is at the destination"));
            }
            if session.replaces && !is_directory {
                let request = Request::new(kind::EXTENDED).text(b"posix-rename@openssh.com");
                return done(session.call(request.text(&src).text(&dst), Bytes::new()).await?);
            }
            let rename = || Request::new(kind::RENAME).text(&src).text(&dst);
            let refusal = match done(session.call(rename(), Bytes::new()).await?) {
                Err(error) if error.kind() == ErrorKind::Permanent => error,
                done => return done,
            };
            match Self::stat_at(&session, &dst).await? {
                // Nothing in one step replaces a file on such a server.
                Some(found) if !found.is_directory && !is_directory => {
                    self.simple(kind::REMOVE, to).await?;
                    done(session.call(rename(), Bytes::new()).await?)
                }
                Some(_) => Err(failure(ErrorKind::Precondition, "something is at the destination")),
                None => Err(refusal),
            }
        })
    }

    fn start<'a>(&'a self, path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async move {
            let path = self.path(path);
            let file = Open::new(self.session().await?, &path, open::CREATE).await?;
            Ok(Box::new(Writing { file, path, len: 0 }) as _)
        })
    }
}

/// A file or directory that is open on the server, until the last clone is dropped.
#[derive(Clone)]
struct Open(Arc<Opened>);

struct Opened {
    session: Arc<Session>,
    handle: Bytes,
    /// Servers use a handle again once it is closed.
    is_closed: AtomicBool,
}

impl Opened {
    fn new(session: Arc<Session>, handle: Bytes) -> Self {
        Self { session, handle, is_closed: AtomicBool::new(false) }
    }
}

impl std::ops::Deref for Open {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.is_closed.load(Ordering::Relaxed) {
            self.session.call_and_forget(Request::new(kind::CLOSE).text(&self.handle));
        }
    }
}

impl Open {
    async fn new(session: Arc<Session>, path: &[u8], flags: u32) -> Result<Self, HttpError> {
        let request = Request::new(kind::OPEN).text(path).number(flags).number(0);
        let handle = handle(session.call(request, Bytes::new()).await?)?;
        Ok(Self(Arc::new(Opened::new(session, handle))))
    }

    async fn attributes(&self) -> Result<packet::Attributes, HttpError> {
        let request = Request::new(kind::FSTAT).text(&self.handle);
        match self.session.call(request, Bytes::new()).await? {
            (kind::ATTRS, mut fields) => fields.attributes(),
            reply => Err(refused(reply)),
        }
    }

    /// Reads at most so many bytes; none at the end.
    async fn read(&self, at: u64, len: u64) -> Result<Bytes, HttpError> {
        let request = Request::new(kind::READ).text(&self.handle).long(at).number(len as u32);
        match self.session.call(request, Bytes::new()).await? {
            (kind::DATA, mut fields) => match fields.bytes()? {
                data if data.len() as u64 <= len => Ok(data),
                _ => Err(HttpError::invalid("it sent more bytes than were requested")),
            },
            reply => match status_of(&reply)? {
                status::EOF => Ok(Bytes::new()),
                _ => Err(refused(reply)),
            },
        }
    }

    /// Reads all of these bytes. A server may send fewer at a time.
    async fn read_all(&self, at: u64, len: u64) -> Result<Bytes, HttpError> {
        let first = self.read(at, len).await?;
        if first.len() as u64 == len {
            return Ok(first);
        }
        let mut all = bytes::BytesMut::from(first);
        while (all.len() as u64) < len {
            let next = self.read(at + all.len() as u64, len - all.len() as u64).await?;
            if next.is_empty() {
                return Err(HttpError::invalid("the file ends before its size"));
            }
            all.extend_from_slice(&next);
        }
        Ok(all.freeze())
    }
}

/// Returns how many requests of so many bytes are made at a time.
fn in_flight(bytes: u32) -> usize {
    (IN_FLIGHT / bytes.max(1)).max(2) as usize
}

/// A file that is being written.
struct Writing {
    file: Open,
    path: Vec<u8>,
    len: u64,
}

impl Sink for Writing {
    fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()> {
        Box::pin(async move {
            let (file, most) = (&self.file, self.file.session.max_write);
            let mut at = self.len;
            let pieces = chunks.iter().flat_map(|chunk| {
                (0..chunk.len())
                    .step_by(most as usize)
                    .map(|start| chunk.slice(start..chunk.len().min(start + most as usize)))
            });
            let pieces: Vec<_> = pieces
                .map(|piece| {
                    let start = at;
                    at += piece.len() as u64;
                    (start, piece)
                })
                .collect();
            let writes = stream::iter(pieces).map(|(start, piece)| async move {
                let request = Request::new(kind::WRITE).text(&file.handle).long(start);
                let request = request.number(piece.len() as u32);
                done(file.session.call(request, piece).await?)
            });
            writes.buffer_unordered(in_flight(most)).try_collect::<()>().await?;
            self.len = at;
            Ok(())
        })
    }

    fn commit(&mut self) -> Done<'_, ObjectMeta> {
        Box::pin(async move {
            let meta = self.file.attributes().await?.entry().meta;
            if meta.size != Some(self.len) {
                return Err(HttpError::invalid("the file has another length than was written"));
            }
            let request = Request::new(kind::CLOSE).text(&self.file.handle);
            self.file.is_closed.store(true, Ordering::Relaxed);
            done(self.file.session.call(request, Bytes::new()).await?)?;
            Ok(meta)
        })
    }

    fn abort(&mut self) -> Done<'_, ()> {
        Box::pin(async move {
            let request = Request::new(kind::REMOVE).text(&self.path);
            match done(self.file.session.call(request, Bytes::new()).await?) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                done => done,
            }
        })
    }
}

fn handle((kind, mut fields): Reply) -> Result<Bytes, HttpError> {
    match kind {
        kind::HANDLE => fields.bytes(),
        kind => Err(refused((kind, fields))),
    }
}

/// Returns what a reply means that has only a status.
fn done(reply: Reply) -> Result<(), HttpError> {
    match status_of(&reply)? {
        status::OK => Ok(()),
        _ => Err(refused(reply)),
    }
}

fn status_of((kind, fields): &Reply) -> Result<u32, HttpError> {
    match *kind {
        kind::STATUS => fields.clone().number(),
        kind => Err(HttpError::invalid(&format!(
            "a packet of type {kind} does not answer this request"
        ))),
    }
}

/// Returns the error of a status that is not a success.
fn refused(reply: Reply) -> HttpError {
    let code = match status_of(&reply) {
        Ok(code) => code,
        Err(error) => return error,
    };
    let message = |mut fields: Fields| {
        let text = fields.number().and_then(|_| fields.bytes()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        tf_fs_object_store::http::printable(&text, 200)
    };
    let text = message(reply.1);
    match code {
        status::NO_SUCH_FILE => missing(),
        status::PERMISSION_DENIED => failure(
            ErrorKind::Denied,
            format!("the server refuses it: {text}; look at the rights of the user on the server"),
        ),
        status::NO_CONNECTION | status::CONNECTION_LOST => {
            failure(ErrorKind::Transient, format!("the server lost its connection: {text}"))
        }
        status::UNSUPPORTED => HttpError::unsupported("this request of SFTP"),
        status::OK | status::EOF => {
            HttpError::invalid(&format!("the status {code} does not answer this request"))
        }
        // One code for most reasons.
        _ => failure(
            ErrorKind::Permanent,
            format!(
                "the server refuses it: {text}; look whether its disk is full, and what is at that path"
            ),
        ),
    }
}
