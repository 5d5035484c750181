//! FTP, and FTP over TLS. OpenDAL's client cannot rename, and lists a directory to look up a file.

mod control;
mod listing;

use crate::place::Place;
use crate::service::{Body, Done, Entry, Service, Sink, failure, missing};
use crate::settings::Settings;
use bytes::{Bytes, BytesMut};
use control::{Control, Login, Reply, Stream, line, refused};
use futures_util::stream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    ErrorKind, GetHead, GetOptions, ObjectMeta, Publication, Range, StoreError as _, StreamBody,
    WriteLimits,
};
use tf_fs_plugin::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a connection stays without use.
const IDLE: Duration = Duration::from_secs(30);
/// How long a look at a file may take whose upload has no reply: the connection for it may have to be made first.
const LOOK: Duration = Duration::from_secs(10);
/// How long the server may take to say that it has seen the end of a transfer which was broken off.
const LAST_WORD: Duration = Duration::from_secs(2);
/// Bytes that are read at a time.
const PIECE: usize = 128 << 10;
/// Bytes of the longest listing.
const LISTING: usize = 128 << 20;

/// A directory of a server.
#[derive(Clone, Debug)]
pub(super) struct Ftp {
    login: Arc<Login>,
    /// Below the user's directory, with a slash at both ends.
    root: String,
    idle: Arc<Idle>,
    permits: Arc<Semaphore>,
}

/// Connections that nobody uses, and since when.
#[derive(Default)]
struct Idle(Mutex<Vec<(Control, Instant)>>);

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").finish_non_exhaustive()
    }
}

impl Idle {
    fn lock(&self) -> MutexGuard<'_, Vec<(Control, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that one operation uses. It is closed when it is dropped, unless it is [kept](Self::keep).
struct Lease {
    control: Control,
    idle: Arc<Idle>,
    /// Whether it was used before: the server may have closed it meanwhile.
    is_used: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    fn keep(self) {
        self.idle.lock().push((self.control, Instant::now()));
    }

    /// Returns the failure of the first command over a connection that the server had closed as one that says nothing.
    fn explained(&self, error: HttpError) -> HttpError {
        match error {
            HttpError::Transport(endpoint, _) if self.is_used => HttpError::Stale(endpoint),
            error => error,
        }
    }

    async fn command(&mut self, command: &str) -> Result<Reply, HttpError> {
        let reply = self.control.command(command).await.map_err(|error| self.explained(error))?;
        self.is_used = false;
        Ok(reply)
    }

    async fn transfer(
        &mut self,
        commands: &[&str],
    ) -> Result<Result<Box<dyn Stream>, Reply>, HttpError> {
        let data = self.control.transfer(commands).await.map_err(|error| self.explained(error))?;
        self.is_used = false;
        Ok(data)
    }
}

impl Ftp {
    pub(super) fn new(place: &Place, settings: &Settings) -> Result<Self> {
        Ok(Self {
            login: Arc::new(Login::new(place, settings)?),
            root: format!("/{}/", place.root.trim_matches('/')).replace("//", "/"),
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(settings.connections)),
        })
    }

    async fn lease(&self) -> Result<Lease, HttpError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| self.login.broken(error))?;
        let idle = {
            let mut all = self.idle.lock();
            all.retain(|(_, since)| since.elapsed() < IDLE);
            all.pop()
        };
        let (control, is_used) = match idle {
            Some((control, _)) => (control, true),
            None => (Control::new(&self.login).await?, false),
        };
        Ok(Lease { control, idle: Arc::clone(&self.idle), is_used, _permit: permit })
    }

    fn path(&self, control: &Control, path: &str) -> Result<String, HttpError> {
        let home = control.home.trim_end_matches('/');
        let path = format!("{home}{}{}", self.root, line(path)?);
        Ok(if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path })
    }

    /// Sends a command about a path, and expects one of these replies. A refusal because nothing is there is told as such.
    async fn simple(&self, command: &str, path: &str, codes: &[u16]) -> Result<(), HttpError> {
        let mut lease = self.lease().await?;
        let full = self.path(&lease.control, path)?;
        let reply = lease.command(&format!("{command} {full}")).await?;
        let done = match codes.contains(&reply.code) {
            true => Ok(()),
            false => Err(explained(&mut lease, &full, &reply).await),
        };
        lease.keep();
        done
    }
}

/// Returns the error of a refusal of a path: servers have one code for most reasons.
async fn explained(lease: &mut Lease, full: &str, reply: &Reply) -> HttpError {
    match reply.code {
        550 | 553 => match look(lease, full).await {
            Ok(None) => missing(),
            Ok(Some(_)) => refused(reply),
            Err(error) => error,
        },
        _ => refused(reply),
    }
}

/// Returns the directory of a path.
fn parent(full: &str) -> &str {
    match full.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => parent,
        _ => "/",
    }
}

/// Looks up a path.
async fn look(lease: &mut Lease, full: &str) -> Result<Option<Entry>, HttpError> {
    if lease.control.has_facts {
        let reply = lease.command(&format!("MLST {full}")).await?;
        return match reply.code {
            250 => {
                // The second line, with a space in front.
                let line = reply.lines.get(1).map_or("", |line| line.trim_start());
                let is_own = line.to_ascii_lowercase().contains("type=cdir");
                match listing::facts(line) {
                    _ if is_own => Ok(Some(Entry::directory())),
                    Some((_, entry)) => Ok(Some(entry)),
                    None => Ok(None),
                }
            }
            550 | 553 | 501 => Ok(None),
            _ => Err(refused(&reply)),
        };
    }
    let size = lease.command(&format!("SIZE {full}")).await?;
    if size.code == 213 {
        let size = size.lines.last().and_then(|text| text.trim().parse().ok());
        let size = size.ok_or_else(|| HttpError::invalid("it tells no size"))?;
        let time = lease.command(&format!("MDTM {full}")).await?;
        let time = time.lines.last().filter(|_| time.code == 213);
        let modified = time.and_then(|text| listing::time(text.trim()));
        // Some servers have sizes of directories.
        let is_directory = modified.is_none() && is_directory(lease, full).await?;
        let meta = ObjectMeta::new(size).with_modified(modified);
        return Ok(Some(if is_directory { Entry::directory() } else { Entry::file(meta) }));
    }
    Ok(is_directory(lease, full).await?.then(Entry::directory))
}

async fn is_directory(lease: &mut Lease, full: &str) -> Result<bool, HttpError> {
    Ok((200..300).contains(&lease.command(&format!("CWD {full}")).await?.code))
}

impl Service for Ftp {
    fn tells_versions(&self) -> bool {
        false
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        Some(WriteLimits::new(Publication::Rename).without_conditions().with_upload())
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let full = self.path(&lease.control, options.key)?;
            let Range { start, end } = options.range;
            let (rest, retrieve) = (format!("REST {start}"), format!("RETR {full}"));
            let commands: &[&str] = if start > 0 { &[&rest, &retrieve] } else { &[&retrieve] };
            match lease.transfer(commands).await? {
                Ok(data) => {
                    let reading = Reading { transfer: Some((lease, data)), left: end - start };
                    Ok((None, StreamBody::boxed(stream::try_unfold(reading, Reading::next))))
                }
                Err(reply) => {
                    let error = explained(&mut lease, &full, &reply).await;
                    lease.keep();
                    Err(error)
                }
            }
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let full = self.path(&lease.control, path)?;
            let found = look(&mut lease, &full).await?;
            lease.keep();
            Ok(found)
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let full = self.path(&lease.control, path)?;
            // A path in the command itself may be taken for options, or for a pattern.
            if !is_directory(&mut lease, &full).await? {
                lease.keep();
                return Err(missing());
            }
            let has_facts = lease.control.has_facts;
            // `-a` shows names with a dot in front.
            let command = if has_facts { "MLSD" } else { "LIST -a" };
            let data = lease.transfer(&[command]).await?;
            let data = data.map_err(|reply| refused(&reply))?;
            let mut bytes = Vec::new();
            data.take(LISTING as u64)
                .read_to_end(&mut bytes)
                .await
                .map_err(|error| self.login.broken(error))?;
            if bytes.len() >= LISTING {
                return Err(HttpError::TooLarge(LISTING));
            }
            lease.control.reply().await?.expect(&[226, 250])?;
            lease.keep();
            let lines = bytes.split(|&byte| byte == b'\n');
            let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
            let read = if has_facts { listing::facts } else { listing::long };
            Ok(lines.filter_map(|line| read(line.trim_end_matches('\r'))).collect())
        })
    }

    fn create_dir<'a>(&'a self, path: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let full = self.path(&lease.control, path)?;
            let reply = lease.command(&format!("MKD {full}")).await?;
            let done = match reply.code {
                257 | 250 => Ok(()),
                // One code for all: its parent is missing, something is there, or it may not.
                550 | 553 | 521 => match look(&mut lease, &full).await? {
                    Some(_) => Err(failure(ErrorKind::Precondition, "something is there")),
                    None => Err(explained(&mut lease, parent(&full), &reply).await),
                },
                _ => Err(refused(&reply)),
            };
            lease.keep();
            done
        })
    }

    fn delete<'a>(&'a self, path: &'a str, is_directory: bool) -> Done<'a, ()> {
        let command = if is_directory { "RMD" } else { "DELE" };
        Box::pin(self.simple(command, path, &[200, 250]))
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let (src, dst) = (self.path(&lease.control, from)?, self.path(&lease.control, to)?);
            // Some servers would replace a directory.
            if !is_directory
                && look(&mut lease, &dst).await?.is_some_and(|found| found.is_directory)
            {
                lease.keep();
                return Err(failure(ErrorKind::Precondition, "a directory is at the destination"));
            }
            let mut has_deleted = false;
            let done = loop {
                let reply = lease.command(&format!("RNFR {src}")).await?;
                if reply.code != 350 {
                    break Err(explained(&mut lease, &src, &reply).await);
                }
                let reply = lease.command(&format!("RNTO {dst}")).await?;
                if matches!(reply.code, 200 | 250) {
                    break Ok(());
                }
                // Some servers do not replace a file.
                let found = look(&mut lease, &dst).await?;
                if found.is_none() {
                    break Err(explained(&mut lease, parent(&dst), &reply).await);
                }
                let is_file = found.is_some_and(|entry| !entry.is_directory);
                if has_deleted || is_directory || !is_file {
                    break Err(refused(&reply));
                }
                lease.command(&format!("DELE {dst}")).await?.expect(&[200, 250])?;
                has_deleted = true;
            };
            lease.keep();
            done
        })
    }

    fn start<'a>(&'a self, path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async move {
            let mut lease = self.lease().await?;
            let full = self.path(&lease.control, path)?;
            match lease.transfer(&[&format!("STOR {full}")]).await? {
                Ok(data) => {
                    let (ftp, path, transfer) =
                        (self.clone(), path.to_owned(), Some((lease, data)));
                    Ok(Box::new(Writing { ftp, path, transfer, len: 0 }) as _)
                }
                Err(reply) => {
                    let error = explained(&mut lease, parent(&full), &reply).await;
                    lease.keep();
                    Err(error)
                }
            }
        })
    }
}

/// A file that is being read.
struct Reading {
    /// Until the end of the bytes.
    transfer: Option<(Lease, Box<dyn Stream>)>,
    left: u64,
}

impl Reading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, HttpError> {
        let Some((mut lease, mut data)) = self.transfer.take() else { return Ok(None) };
        let room = PIECE.min(usize::try_from(self.left).unwrap_or(PIECE));
        let mut piece = BytesMut::with_capacity(room);
        let mut limited = (&mut data).take(room as u64);
        lease.control.login.progress(limited.read_buf(&mut piece)).await?;
        self.left -= piece.len() as u64;
        if !piece.is_empty() && self.left > 0 {
            self.transfer = Some((lease, data));
            return Ok(Some((piece.freeze(), self)));
        }
        // Also before the end of the file: the server stops when the connection is closed.
        drop(data);
        let is_whole = self.left == 0;
        let last = tokio::time::timeout(LAST_WORD, lease.control.reply()).await;
        match last {
            Ok(Ok(reply)) if matches!(reply.code, 226 | 250) => lease.keep(),
            Ok(Ok(reply)) if is_whole && matches!(reply.code, 426 | 450 | 451 | 551) => {
                lease.keep()
            }
            Ok(Ok(reply)) if !is_whole => return Err(refused(&reply)),
            Ok(Err(error)) if !is_whole => return Err(error),
            // All is here; only the connection is lost.
            _ => {}
        }
        Ok((!piece.is_empty()).then(|| (piece.freeze(), self)))
    }
}

/// A file that is being written.
struct Writing {
    ftp: Ftp,
    path: String,
    /// Until it is complete.
    transfer: Option<(Lease, Box<dyn Stream>)>,
    len: u64,
}

impl Sink for Writing {
    fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()> {
        Box::pin(async move {
            let (mut lease, mut data) = self.transfer.take().ok_or_else(ended)?;
            for piece in chunks.iter().flat_map(|chunk| chunk.chunks(PIECE)) {
                if let Err(error) = lease.control.login.progress(data.write_all(piece)).await {
                    // The server may say why.
                    let last = tokio::time::timeout(LAST_WORD, lease.control.reply()).await;
                    return Err(match last {
                        Ok(Ok(reply)) if reply.code >= 400 => refused(&reply),
                        _ => error,
                    });
                }
                self.len += piece.len() as u64;
            }
            self.transfer = Some((lease, data));
            Ok(())
        })
    }

    fn commit(&mut self) -> Done<'_, ObjectMeta> {
        Box::pin(async move {
            let (mut lease, mut data) = self.transfer.take().ok_or_else(ended)?;
            lease.control.login.progress(data.shutdown()).await?;
            drop(data);
            let reply = loop {
                match lease.control.reply().await {
                    // A server that has all bytes may still copy or check them: then the engine's own limit counts.
                    Err(HttpError::Stalled(..))
                        if is_there(&self.ftp, &self.path, self.len).await => {}
                    reply => break reply?,
                }
            };
            reply.expect(&[226, 250])?;
            lease.keep();
            Ok(ObjectMeta::new(self.len))
        })
    }

    fn abort(&mut self) -> Done<'_, ()> {
        // Without the end of the data, and without the connection for commands.
        self.transfer = None;
        Box::pin(async move {
            match self.ftp.delete(&self.path, false).await {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                deleted => deleted,
            }
        })
    }
}

/// Returns whether the server has so many bytes, as another connection sees it.
async fn is_there(ftp: &Ftp, path: &str, len: u64) -> bool {
    let look = tokio::time::timeout(LOOK, ftp.stat(path)).await;
    matches!(look, Ok(Ok(Some(entry))) if entry.meta.size == Some(len))
}

fn ended() -> HttpError {
    HttpError::Other(Error::failed_precondition("an upload that has failed goes on"))
}
