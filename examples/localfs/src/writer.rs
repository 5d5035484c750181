//! Files open for writing.

use crate::error::describe;
use crate::name::LocalPath;
use crate::root::{Access, Root};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tf_fs_plugin::{Error, Result, WritableFile};

/// A file open for writing, with a buffer.
///
/// Appended data is in the file after `flush`, `sync` or `close`, and durable after `sync`. A
/// writer that is dropped without `close` writes its buffer to the file; an error is only logged
/// then.
#[derive(Debug)]
pub struct Writer {
    /// `None` once it is closed.
    file: Option<File>,
    buffer: Vec<u8>,
    /// The maximum length of `buffer` in bytes.
    capacity: usize,
    /// Where the buffer begins in the file.
    position: u64,
    sync_on_close: bool,
    /// The directory of the file until the file's name in it is durable.
    unsynced_parent: Option<(Arc<Root>, PathBuf)>,
    /// Why the file can no longer match what was appended.
    broken: Option<String>,
    /// The name, for messages.
    uri: String,
}

impl Writer {
    /// Opens the file of `place`, whose root is `root`.
    pub(crate) fn open(
        root: &Arc<Root>,
        place: &LocalPath<'_>,
        access: Access,
        capacity: usize,
        sync_on_close: bool,
    ) -> Result<Self> {
        let file = File::from(place.open(access)?);
        let position = match access {
            Access::Append => file.metadata().map_err(|error| place.describe(error))?.len(),
            _ => 0,
        };
        let parent = place.path.parent().map(|parent| (Arc::clone(root), parent.to_owned()));
        Ok(Self {
            file: Some(file),
            buffer: Vec::new(),
            capacity,
            position,
            sync_on_close,
            unsynced_parent: parent,
            broken: None,
            uri: place.uri.to_string(),
        })
    }

    /// Writes to the file and returns how much of `data` got there.
    fn write(&self, data: &[u8]) -> (usize, io::Result<()>) {
        let Some(mut file) = self.file.as_ref() else {
            return (0, Err(Errno::BADF.into()));
        };
        let mut written = 0;
        while written < data.len() {
            match file.write(&data[written..]) {
                Ok(0) => return (written, Err(Errno::NOSPC.into())),
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Writes the buffer to the file. Bytes that are not written stay in the buffer for the next try.
    fn write_buffer(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let (written, result) = self.write(&self.buffer);
        self.buffer.drain(..written);
        self.position += written as u64;
        result.map_err(|error| describe(error, &self.uri))
    }

    /// Writes to the file without the buffer, which is empty.
    fn write_directly(&mut self, data: &[u8]) -> Result<()> {
        let (written, result) = self.write(data);
        self.position += written as u64;
        result.map_err(|error| {
            let error = describe(error, &self.uri);
            if written > 0 {
                self.break_for_good(&error);
            }
            error
        })
    }

    /// Makes every later operation fail, so that a gap or a repeated piece is never taken for a
    /// success.
    fn break_for_good(&mut self, error: &Error) {
        self.broken = Some(error.message().to_owned());
    }

    fn check(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(reason) => Err(Error::data_loss(format_args!(
                "an earlier write failed half-way, so the file is incomplete; write it again: {reason}"
            ))),
        }
    }

    fn synchronise(&mut self) -> Result<()> {
        self.write_buffer()?;
        let Some(file) = &self.file else { return Ok(()) };
        match file.sync_data() {
            // A pipe or a device, which cannot be made durable.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
            other => other.map_err(|error| describe(error, &self.uri))?,
        }
        if let Some((root, parent)) = &self.unsynced_parent {
            crate::fsync::sync_directory(root, parent)
                .map_err(|error| describe(error, &self.uri))?;
            self.unsynced_parent = None;
        }
        Ok(())
    }
}

impl WritableFile for Writer {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check()?;
        if data.len() > self.capacity.saturating_sub(self.buffer.len()) {
            self.write_buffer()?;
            if data.len() >= self.capacity {
                return self.write_directly(data);
            }
        }
        self.buffer.try_reserve(data.len()).map_err(|_| {
            Error::resource_exhausted(format_args!("{}: no memory to buffer writes", self.uri))
        })?;
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    fn tell(&mut self) -> Result<u64> {
        self.check()?;
        Ok(self.position + self.buffer.len() as u64)
    }

    fn flush(&mut self) -> Result<()> {
        self.check()?;
        self.write_buffer()
    }

    fn sync(&mut self) -> Result<()> {
        self.check()?;
        self.synchronise()
    }

    fn close(&mut self) -> Result<()> {
        self.check()?;
        if self.sync_on_close {
            self.synchronise()?;
        } else {
            self.write_buffer()?;
        }
        // A network filesystem may report errors of earlier writes only now. The handle is closed
        // in any case, so there is no second try.
        if let Some(file) = self.file.take() {
            nix::unistd::close(file).map_err(|error| {
                let error = describe(error.into(), &self.uri);
                self.break_for_good(&error);
                error
            })?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.file.is_some()
            && self.broken.is_none()
            && let Err(error) = self.write_buffer()
        {
            log::error!("a file was dropped without having been closed: {error:#}");
        }
    }
}
