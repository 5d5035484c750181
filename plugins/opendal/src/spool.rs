//! Files on their way to a server that takes them whole, and wants to know their length first: they wait on the local disk.

use crate::service::{Done, failure};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tf_fs_object_store::ErrorKind;
use tf_fs_object_store::http::HttpError;

/// Bytes that are sent at a time.
const PIECE: usize = 256 << 10;

/// A file without a name in the directory for temporary files. It is gone with the process.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Arc<File>,
    len: u64,
}

impl Spool {
    pub(crate) fn new() -> Result<Self, HttpError> {
        let file = tempfile::tempfile().map_err(|error| refused(&error))?;
        Ok(Self { file: Arc::new(file), len: 0 })
    }

    /// Adds bytes.
    pub(crate) fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()> {
        Box::pin(async move {
            let (file, own) = (Arc::clone(&self.file), chunks.to_vec());
            let written = tokio::task::spawn_blocking(move || {
                own.iter().try_for_each(|chunk| (&*file).write_all(chunk))
            });
            let written = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            written.map_err(|error| refused(&error))?;
            self.len += chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            Ok(())
        })
    }

    /// Returns all bytes, as the body of a request.
    pub(crate) fn body(&self) -> FileBody {
        FileBody { file: Arc::clone(&self.file), at: 0, end: self.len }
    }
}

fn refused(error: &io::Error) -> HttpError {
    let place = std::env::temp_dir();
    failure(
        ErrorKind::Permanent,
        format!(
            "{}: {error}; a large file waits there until it is sent: make room, or set TMPDIR to a directory with room",
            place.display()
        ),
    )
}

/// The bytes of a file as the body of a request, which can be sent again.
#[derive(Clone, Debug)]
pub(crate) struct FileBody {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl FileBody {
    /// Returns the number of bytes that are left to send.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.at
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    // It was just written: the system has it in memory, or reads it ahead.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let len = PIECE.min(usize::try_from(self.len()).unwrap_or(PIECE));
        if len == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; len];
        let read = self.file.read_exact_at(&mut piece, self.at);
        self.at += len as u64;
        Poll::Ready(Some(read.map(|()| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_bytes_are_sent_each_time() {
        let mut spool = Spool::new().unwrap();
        let bytes: Vec<u8> = (0..PIECE * 2 + 7).map(|at| (at % 251) as u8).collect();
        let (first, last) = bytes.split_at(1000);
        let chunks = [Bytes::copy_from_slice(first), Bytes::copy_from_slice(last)];
        spool.append(&chunks[..1]).await.unwrap();
        spool.append(&chunks[1..]).await.unwrap();
        for _ in 0..2 {
            let mut body = spool.body();
            assert_eq!(body.size_hint().exact(), Some(bytes.len() as u64));
            let mut sent = Vec::new();
            while let Some(frame) =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
            {
                sent.extend_from_slice(&frame.unwrap().into_data().unwrap());
            }
            assert!(sent == bytes && body.is_end_stream());
        }
    }
}
