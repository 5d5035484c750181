//! The file of one block.
//!
//! | Bytes | |
//! |---|---|
//! | 0..8 | `TFBLOCK1` |
//! | 8..40 | digest of store, key and version |
//! | 40..48 | number of the block in the object |
//! | 48..56 | bytes of the object |
//! | 56..60 | bytes of the block |
//! | 60..62 | bytes of the ETag |
//! | 64..128 | CRC-32 of each 64 KiB of the block |
//! | 128..508 | the ETag |
//! | 508..512 | CRC-32 of all before |
//! | 512.. | the block |
//!
//! Numbers are little-endian.

use crate::Range;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// Bytes of a block; the last one of an object has fewer.
pub(crate) const BLOCK: u64 = 1 << 20;
/// Bytes per checksum: reads are whole grains.
pub(super) const GRAIN: u64 = 64 << 10;
/// Bytes of the head of a file.
const HEADER: usize = 512;
/// The most bytes of an ETag.
pub(super) const LONGEST_ETAG: usize = 380;
const MAGIC: &[u8; 8] = b"TFBLOCK1";
const GRAINS: usize = (BLOCK / GRAIN) as usize;
/// The least time between two updates of when a block was used.
const USED: Duration = Duration::from_secs(10);

/// The identity of a version of an object.
pub(super) type Digest = [u8; 32];

/// The contents of the head of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) digest: Digest,
    pub(super) index: u64,
    /// Bytes of the object.
    pub(super) size: u64,
    pub(super) etag: String,
}

/// An open block.
#[derive(Debug)]
pub(super) struct Block {
    file: File,
    pub(super) header: Header,
    pub(super) len: u64,
    checksums: [u32; GRAINS],
}

impl Header {
    /// Returns the number of bytes of the block.
    fn block(&self) -> u64 {
        self.size.saturating_sub(self.index.saturating_mul(BLOCK)).min(BLOCK)
    }

    /// Encodes the head of a file that holds these bytes.
    fn encode(&self, pieces: &[impl AsRef<[u8]>]) -> [u8; HEADER] {
        let mut head = [0; HEADER];
        head[..8].copy_from_slice(MAGIC);
        head[8..40].copy_from_slice(&self.digest);
        head[40..48].copy_from_slice(&self.index.to_le_bytes());
        head[48..56].copy_from_slice(&self.size.to_le_bytes());
        head[56..60].copy_from_slice(&(self.block() as u32).to_le_bytes());
        head[60..62].copy_from_slice(&(self.etag.len() as u16).to_le_bytes());
        for (checksum, place) in checksums(pieces).into_iter().zip(head[64..128].chunks_mut(4)) {
            place.copy_from_slice(&checksum.to_le_bytes());
        }
        head[128..128 + self.etag.len()].copy_from_slice(self.etag.as_bytes());
        let checksum = crc32fast::hash(&head[..HEADER - 4]);
        head[HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    fn decode(head: &[u8; HEADER]) -> Option<(Self, [u32; GRAINS])> {
        let number = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let short = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let etag = usize::from(u16::from_le_bytes([head[60], head[61]]));
        if &head[..8] != MAGIC || crc32fast::hash(&head[..HEADER - 4]) != short(HEADER - 4) {
            return None;
        }
        let header = Self {
            digest: head[8..40].try_into().ok()?,
            index: number(40),
            size: number(48),
            etag: str::from_utf8(head.get(128..128 + etag)?).ok()?.to_owned(),
        };
        let checksums = std::array::from_fn(|grain| short(64 + 4 * grain));
        (u64::from(short(56)) == header.block()).then_some((header, checksums))
    }
}

/// Returns the checksum of each grain of the bytes that follow one another in `pieces`.
fn checksums(pieces: &[impl AsRef<[u8]>]) -> Vec<u32> {
    let mut all = Vec::with_capacity(GRAINS);
    let (mut grain, mut len) = (crc32fast::Hasher::new(), 0);
    for piece in pieces {
        let mut rest = piece.as_ref();
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(GRAIN as usize - len));
            grain.update(now);
            len += now.len();
            rest = after;
            if len == GRAIN as usize {
                all.push(std::mem::take(&mut grain).finalize());
                len = 0;
            }
        }
    }
    if len > 0 {
        all.push(grain.finalize());
    }
    all
}

fn broken(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.to_owned())
}

/// Returns the length of the file of a block of `bytes` bytes.
pub(super) fn file_len(bytes: u64) -> u64 {
    HEADER as u64 + bytes
}

/// Writes a block of these bytes.
pub(super) fn write(
    file: &mut File,
    header: &Header,
    pieces: &[impl AsRef<[u8]>],
) -> io::Result<()> {
    file.write_all(&header.encode(pieces))?;
    pieces.iter().try_for_each(|piece| file.write_all(piece.as_ref()))
}

impl Block {
    /// Reads the head of the file.
    ///
    /// # Errors
    /// `InvalidData` if it is not a whole block, and those of the disk.
    pub(super) fn open(file: File) -> io::Result<Self> {
        let mut head = [0; HEADER];
        file.read_exact_at(&mut head, 0).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => broken("its head is cut off"),
            _ => error,
        })?;
        let (header, checksums) =
            Header::decode(&head).ok_or_else(|| broken("its head is broken"))?;
        let (len, found) = (header.block(), file.metadata()?);
        if found.len() != file_len(len) {
            return Err(broken("it is cut off"));
        }
        if found.modified().is_ok_and(|used| used.elapsed().is_ok_and(|age| age > USED)) {
            let _ = file.set_modified(SystemTime::now());
        }
        Ok(Self { file, header, len, checksums })
    }

    /// Adds these bytes of the block to `buf`: whole grains, of which the last may be cut off by the block's end.
    ///
    /// # Errors
    /// `DATA_LOSS` if they are not what was written, others if they cannot be read now. Then nothing is added.
    pub(super) fn read(&self, range: Range, buf: &mut ReadBuf<'_>) -> Result<()> {
        debug_assert!(range.start.is_multiple_of(GRAIN));
        debug_assert!(range.end.is_multiple_of(GRAIN) || range.end == self.len);
        // On the whole buffer, `fill_uninit` would zero what it does not fill, if the memory is somebody's slice.
        buf.fill_parts(&[range.len() as usize], |parts| {
            parts[0].fill_uninit(|rest| {
                let position = HEADER as u64 + range.start;
                let bytes = match rustix::io::pread(&self.file, rest, position) {
                    Ok((bytes, [])) => bytes,
                    Ok(_) => return Err(Error::data_loss("it is cut off")),
                    Err(Errno::IO) => return Err(Error::data_loss(Errno::IO)),
                    Err(error) => return Err(io::Error::from(error).into()),
                };
                let first = (range.start / GRAIN) as usize;
                for (grain, sum) in bytes.chunks(GRAIN as usize).zip(&self.checksums[first..]) {
                    let is_right = crc32fast::hash(grain) == *sum;
                    ensure!(is_right, Error::data_loss("its checksum is wrong"));
                }
                Ok(bytes)
            })
        })??;
        Ok(())
    }
}
