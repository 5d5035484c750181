//! Files that their server sends only as a whole: received once, into memory, or into an unnamed file on the disk.

use crate::bucket::Origin;
use crate::response;
use crate::settings::Settings;
use flate2::write::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_object_store::http::{HttpError, Method, RangeOutcome, Response};
use tf_fs_object_store::{GetOptions, MemoryBudget, Name, Range, Reservation};
use tf_fs_plugin::prelude::*;

/// The most bytes of one file that are kept in memory. A larger one goes to the disk.
const IN_MEMORY: usize = 16 << 20;
/// Bytes that are read at once from a file that is to be decompressed.
const PIECE: usize = 64 << 10;

/// A file that was received as a whole.
#[derive(Debug)]
pub(crate) struct Spooled {
    content: Content,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    /// Whether `content` is still compressed; `size` is not that of the compressed bytes.
    is_packed: bool,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<u8>, Vec<Reservation>),
    Disk(File),
}

impl RandomAccessFile for Spooled {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let file = match &self.content {
            Content::Memory(bytes, _) => {
                buf.fill_from(bytes, offset);
                return Ok(());
            }
            Content::Disk(file) => file,
        };
        let mut position = offset;
        while buf.remaining() > 0 && position < self.size {
            let n = buf.fill_with(|to| {
                loop {
                    match file.read_at(to, position) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        outcome => return outcome.map_err(unreadable),
                    }
                }
            })?;
            position += n as u64;
        }
        if buf.remaining() > 0 {
            buf.end_of_file();
        }
        Ok(())
    }
}

#[cold]
fn unreadable(error: io::Error) -> Error {
    Error::internal("cannot read a temporary file").with_source(error)
}

impl Spooled {
    /// Returns the file itself, in place of one that is still compressed.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(crate) fn unpacked(
        self: Arc<Self>,
        budget: &Arc<MemoryBudget>,
        settings: &Settings,
    ) -> Result<Arc<Self>, HttpError> {
        if !self.is_packed {
            return Ok(self);
        }
        let spool = Spool::new(settings, budget);
        let mut sink = Sink::Gzip(Box::new(MultiGzDecoder::new(spool)));
        match &self.content {
            Content::Memory(bytes, _) => sink.take(bytes)?,
            Content::Disk(file) => {
                let mut piece = vec![0; PIECE];
                let mut position = 0;
                loop {
                    match file.read_at(&mut piece, position) {
                        Ok(0) => break,
                        Ok(n) => {
                            sink.take(&piece[..n])?;
                            position += n as u64;
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(HttpError::Other(unreadable(error))),
                    }
                }
            }
        }
        sink.finish(self.modified).map(Arc::new)
    }
}

/// Where the bytes of a file are stored as they arrive.
struct Spool<'a> {
    content: Content,
    size: u64,
    /// Compressed bytes that `size` was made from, if it was.
    packed: Option<u64>,
    /// Whether the bytes are counted, and not stored.
    is_counted: bool,
    settings: &'a Settings,
    budget: &'a Arc<MemoryBudget>,
}

impl<'a> Spool<'a> {
    fn new(settings: &'a Settings, budget: &'a Arc<MemoryBudget>) -> Self {
        let content = Content::Memory(Vec::new(), Vec::new());
        Self { content, size: 0, packed: None, is_counted: false, settings, budget }
    }

    fn directory(&self) -> PathBuf {
        self.settings.spool_directory.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn check(&self) -> Result<(), TooLarge> {
        let Settings { spool, gzip, gzip_ratio, .. } = *self.settings;
        if let Some(packed) = self.packed {
            if self.size > gzip {
                return Err(TooLarge::Gzip(gzip));
            }
            if self.size > packed.saturating_mul(gzip_ratio).max(IN_MEMORY as u64) {
                return Err(TooLarge::Ratio(gzip_ratio));
            }
        }
        if self.size > spool { Err(TooLarge::Spool(spool)) } else { Ok(()) }
    }
}

/// The limit that ended the spooling, in the error of a write.
#[derive(Debug)]
enum TooLarge {
    Spool(u64),
    Gzip(u64),
    Ratio(u64),
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spool(most) => write!(
                f,
                "the server sends it only whole, and it has more than {most} bytes; raise TF_HTTPS_SPOOL_BYTES, or download \
                 it first"
            ),
            Self::Gzip(most) => write!(
                f,
                "the server compresses it, and it has more than {most} bytes without; raise TF_HTTPS_GZIP_BYTES if you trust \
                 the server"
            ),
            Self::Ratio(most) => write!(
                f,
                "the server compresses it, and it becomes more than {most} times as large without; raise \
                 TF_HTTPS_GZIP_RATIO if you trust the server"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

impl Write for Spool<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.size += bytes.len() as u64;
        self.check().map_err(io::Error::other)?;
        if self.is_counted {
            return Ok(bytes.len());
        }
        if let Content::Memory(held, reservations) = &mut self.content {
            let fits = self.size <= IN_MEMORY as u64;
            match self.budget.try_reserve(bytes.len()).filter(|_| fits) {
                Some(reservation) => {
                    reservations.push(reservation);
                    held.extend_from_slice(bytes);
                    return Ok(bytes.len());
                }
                None => {
                    let held = std::mem::take(held);
                    let mut file = tempfile::tempfile_in(self.directory())?;
                    file.write_all(&held)?;
                    self.content = Content::Disk(file);
                }
            }
        }
        if let Content::Disk(file) = &mut self.content {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the bytes of a body go.
enum Sink<'a> {
    Plain(Spool<'a>),
    /// Decompressed.
    Gzip(Box<MultiGzDecoder<Spool<'a>>>),
    /// StoredObject as they arrive, and decompressed only to count what they become.
    Packed(Spool<'a>, Box<MultiGzDecoder<Spool<'a>>>),
}

impl<'a> Sink<'a> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), HttpError> {
        if let Self::Gzip(decoder) | Self::Packed(_, decoder) = self {
            *decoder.get_mut().packed.get_or_insert(0) += bytes.len() as u64;
        }
        match self {
            Self::Plain(spool) => spool.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Packed(spool, counter) => {
                counter.write_all(bytes).and_then(|()| spool.write_all(bytes))
            }
        }
        .map_err(|error| self.failed(error))
    }

    fn finish(self, modified: Option<SystemTime>) -> Result<Spooled, HttpError> {
        let whole = |decoder: MultiGzDecoder<Spool<'a>>| decoder.finish().map_err(|_| broken());
        let (spool, size) = match self {
            Self::Plain(spool) => (spool, None),
            Self::Gzip(decoder) => (whole(*decoder)?, None),
            Self::Packed(spool, counter) => (spool, Some(whole(*counter)?.size)),
        };
        let is_packed = size.is_some();
        let size = size.unwrap_or(spool.size);
        Ok(Spooled { content: spool.content, size, modified, is_packed })
    }

    fn failed(&self, error: io::Error) -> HttpError {
        if error.get_ref().is_some_and(|error| error.is::<TooLarge>()) {
            return HttpError::Other(Error::resource_exhausted(error));
        }
        let directory = match self {
            Self::Gzip(_) | Self::Packed(..)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                return broken();
            }
            Self::Gzip(decoder) => decoder.get_ref().directory(),
            Self::Plain(spool) | Self::Packed(spool, _) => spool.directory(),
        };
        HttpError::Other(Error::resource_exhausted(format_args!(
            "the server sends it only whole, and {} cannot hold it: {error}; free space there, or set \
             TF_HTTPS_SPOOL_DIRECTORY",
            directory.display()
        )))
    }
}

fn broken() -> HttpError {
    HttpError::Invalid(
        "its compressed bytes (Content-Encoding: gzip) are damaged or incomplete".into(),
    )
}

/// The purpose of a whole file that is received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Purpose {
    /// Its size: what is compressed stays so.
    Stat,
    /// Its bytes.
    Open,
}

/// Receives a whole file: the body of `response`, or of a new one if there is none.
///
/// # Errors
/// If it does not arrive, or there is no room for it.
pub(crate) async fn receive(
    origin: &Origin,
    name: &Name,
    response: Option<Response>,
    purpose: Purpose,
    budget: &Arc<MemoryBudget>,
    settings: &Settings,
) -> Result<Spooled, HttpError> {
    let response = match response {
        Some(response) => response,
        None => origin.request(Method::GET, &name.key, None).await?,
    };
    // Some servers send 206 with all of the file.
    let nothing = GetOptions::new(&name.key, Range::new(0, 0));
    let RangeOutcome::Whole(len) = response.range_response().read(nothing)? else {
        return Err(origin.error_of(response).await);
    };
    let (_, modified) = response::version(&response);
    let spool = Spool::new(settings, budget);
    let mut sink = match response.compression() {
        None => Sink::Plain(spool),
        Some(encoding) if matches!(encoding.as_str(), "gzip" | "x-gzip") => {
            let mut decoded = Spool::new(settings, budget);
            decoded.is_counted = purpose == Purpose::Stat;
            let decoder = Box::new(MultiGzDecoder::new(decoded));
            match purpose {
                Purpose::Stat => Sink::Packed(spool, decoder),
                Purpose::Open => Sink::Gzip(decoder),
            }
        }
        Some(encoding) => {
            return Err(HttpError::Other(Error::failed_precondition(format_args!(
                "the server compresses it (Content-Encoding: {}) although that was not requested; download it with a \
                 program that decodes this, or switch it off at the server",
                encoding.escape_debug()
            ))));
        }
    };
    if len.is_some_and(|len| len > settings.spool) {
        let error = TooLarge::Spool(settings.spool);
        return Err(HttpError::Other(Error::resource_exhausted(error)));
    }
    let mut body = response.into_body(len);
    while let Some(chunk) = body.chunk_in_time().await? {
        sink.take(&chunk)?;
    }
    sink.finish(modified)
}
