//! Files open for reading.

use crate::error::describe;
use crate::name::LocalPath;
use crate::root::{Access, is_directory};
use rustix::io::Errno;
use std::fs::File;
use tf_fs_plugin::{Error, RandomAccessFile, ReadBuf, Result};

/// A file open for reading.
#[derive(Debug)]
pub struct Reader {
    file: File,
}

impl Reader {
    pub(crate) fn open(place: &LocalPath<'_>) -> Result<Self> {
        Ok(Self { file: open_file(place)? })
    }
}

/// Opens anything except a directory, which the system would open, too.
pub(crate) fn open_file(place: &LocalPath<'_>) -> Result<File> {
    let file = place.open(Access::Read)?;
    let stat = rustix::fs::fstat(&file).map_err(|error| place.describe(error))?;
    if is_directory(&stat) {
        return Err(Error::expected_file(place.uri));
    }
    Ok(file.into())
}

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let mut offset = offset;
        while buf.remaining() > 0 {
            // No file is longer than the system calls can address.
            if offset.saturating_add(buf.remaining() as u64) > i64::MAX as u64 {
                buf.end_of_file();
                break;
            }
            let mut interrupted = false;
            let read = buf.fill_uninit(|rest| match rustix::io::pread(&self.file, rest, offset) {
                Ok((read, _)) => Ok(read),
                Err(Errno::INTR) => {
                    interrupted = true;
                    Err(describe(Errno::INTR.into(), "reading"))
                }
                Err(error) => Err(describe(error.into(), "reading")),
            });
            match read {
                // The end of the file, which `fill_uninit` has noted.
                Ok(0) => break,
                Ok(read) => offset += read as u64,
                Err(_) if interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
