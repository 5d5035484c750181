//! Files that their server sends only as a whole: received once, into memory, or into an unnamed file on the disk.

use crate::answer;
use crate::origin::Origin;
use crate::settings::Settings;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{Failed, Method, Response};
use tf_fs_object_store::{Budget, Name, ObjectStore as _, Reservation};
use tf_fs_plugin::prelude::*;

/// The most bytes of one file that are kept in memory. A larger one goes to the disk.
const IN_MEMORY: usize = 16 << 20;

/// A file that was received as a whole.
#[derive(Debug)]
pub(crate) struct Spooled {
    content: Content,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
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
        let failed =
            |error: io::Error| Error::internal("cannot read a temporary file").with_source(error);
        let mut position = offset;
        while buf.remaining() > 0 && position < self.size {
            let n = buf.fill_with(|to| {
                loop {
                    match file.read_at(to, position) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        outcome => return outcome.map_err(failed),
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

/// Where the bytes of a file are stored as they arrive.
struct Spool<'a> {
    content: Content,
    size: u64,
    settings: &'a Settings,
    budget: &'a Arc<Budget>,
}

impl Spool<'_> {
    fn directory(&self) -> PathBuf {
        self.settings.spool_directory.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// The limit that ended the spooling, in the error of a write.
#[derive(Debug)]
struct TooLarge(u64);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the server sends it only whole, and it has more than {} bytes; raise TF_HTTPS_SPOOL_BYTES, or download it first",
            self.0
        )
    }
}

impl std::error::Error for TooLarge {}

impl Write for Spool<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.size += bytes.len() as u64;
        if self.size > self.settings.spool {
            return Err(io::Error::other(TooLarge(self.settings.spool)));
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
    Gzip(Box<MultiGzDecoder<Spool<'a>>>),
}

impl<'a> Sink<'a> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        match self {
            Self::Plain(spool) => spool.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
        }
        .map_err(|error| self.failed(error))
    }

    fn finish(self) -> Result<Spool<'a>, Failed> {
        match self {
            Self::Plain(spool) => Ok(spool),
            Self::Gzip(decoder) => decoder.finish().map_err(|_| broken()),
        }
    }

    fn failed(&self, error: io::Error) -> Failed {
        if error.get_ref().is_some_and(|error| error.is::<TooLarge>()) {
            return Failed::Other(Error::resource_exhausted(error));
        }
        let directory = match self {
            Self::Gzip(_)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                return broken();
            }
            Self::Gzip(decoder) => decoder.get_ref().directory(),
            Self::Plain(spool) => spool.directory(),
        };
        Failed::Other(Error::resource_exhausted(format_args!(
            "the server sends it only whole, and {} cannot hold it: {error}; free space there, or set \
             TF_HTTPS_SPOOL_DIRECTORY",
            directory.display()
        )))
    }
}

fn broken() -> Failed {
    Failed::Invalid(
        "its compressed bytes (Content-Encoding: gzip) are damaged or incomplete".into(),
    )
}

/// Receives a whole file: the body of `response`, or of a new one if there is none.
///
/// # Errors
/// If it does not arrive, or there is no room for it.
pub(crate) async fn receive(
    origin: &Origin,
    name: &Name,
    response: Option<Response>,
    budget: &Arc<Budget>,
    settings: &Settings,
) -> Result<Spooled, Failed> {
    let response = match response {
        Some(response) => response,
        None => origin.request(Method::GET, &name.key, None, None).await?,
    };
    if response.status != 200 {
        return Err(origin.refusal(response).await);
    }
    let (_, modified) = answer::version(&response);
    let spool =
        Spool { content: Content::Memory(Vec::new(), Vec::new()), size: 0, settings, budget };
    let mut sink = match answer::encoding(&response) {
        None => Sink::Plain(spool),
        Some(encoding) if matches!(encoding.as_str(), "gzip" | "x-gzip") => {
            Sink::Gzip(Box::new(MultiGzDecoder::new(spool)))
        }
        Some(encoding) => {
            return Err(Failed::Other(Error::failed_precondition(format_args!(
                "the server compresses it (Content-Encoding: {}) although that was not requested; download it with a \
                 program that decodes this, or switch it off at the server",
                encoding.escape_debug()
            ))));
        }
    };
    let len = response.content_length;
    if let (Some(len), Sink::Plain(_)) = (len, &sink)
        && len > settings.spool
    {
        return Err(Failed::Other(Error::resource_exhausted(TooLarge(settings.spool))));
    }
    let stall: Duration = origin.settings().stall_timeout;
    let mut body = response.into_body(len);
    loop {
        let chunk: Option<Bytes> = match tokio::time::timeout(stall, body.chunk()).await {
            Ok(chunk) => chunk?,
            Err(_) => return Err(Failed::Stalled(origin.endpoint(), stall)),
        };
        match chunk {
            Some(chunk) => sink.take(&chunk)?,
            None => break,
        }
    }
    let Spool { content, size, .. } = sink.finish()?;
    Ok(Spooled { content, size, modified })
}
