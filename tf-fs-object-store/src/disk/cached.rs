//! The blocks of one version of an object.

use super::block::{self, BLOCK, Block, Digest, GRAIN, Header, LONGEST_ETAG};
use super::block_path::BlockPath;
use super::directory::Directory;
use crate::{MemoryBudget, Range, metrics};
use sha2::{Digest as _, Sha256};
use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_plugin::prelude::*;

/// An object of which blocks may be on the disk.
#[derive(Debug)]
pub(crate) struct CachedObject {
    directory: Arc<Directory>,
    digest: Digest,
    /// Names the files of its blocks in any version: those of a new version replace those of the one before.
    name: String,
}

/// One version of it.
#[derive(Debug)]
pub(crate) struct CachedVersion {
    object: Arc<CachedObject>,
    digest: Digest,
    etag: String,
    size: u64,
    /// The block that was read last: often the next one too.
    last: Mutex<Option<Arc<Block>>>,
    /// The grain that was read last, for small reads.
    grain: Mutex<(Range, Vec<u8>)>,
}

impl CachedObject {
    pub(super) fn new(directory: Arc<Directory>, identity: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in identity {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = Digest::from(hash.finalize());
        let name = digest[..16].iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        });
        Self { directory, digest, name }
    }

    fn version(&self, etag: &str, size: u64) -> Digest {
        let hash = Sha256::new().chain_update(self.digest).chain_update(size.to_le_bytes());
        hash.chain_update(etag).finalize().into()
    }

    /// Returns the version of this ETag, which names its exact bytes. `None` for an empty object or too long an ETag.
    pub(crate) fn cached(self: &Arc<Self>, etag: &str, size: u64) -> Option<CachedVersion> {
        (size > 0 && etag.len() <= LONGEST_ETAG).then(|| CachedVersion {
            object: Arc::clone(self),
            digest: self.version(etag, size),
            etag: etag.to_owned(),
            size,
            last: Mutex::default(),
            grain: Mutex::new((Range::new(0, 0), Vec::new())),
        })
    }

    /// Returns whether its first block is there, in any version.
    pub(crate) fn begins(&self) -> bool {
        self.open(0).is_some_and(|block| {
            let Header { digest, size, etag, .. } = &block.header;
            *digest == self.version(etag, *size)
        })
    }

    /// Opens a block, in any version. Deletes a broken one.
    fn open(&self, index: u64) -> Option<Block> {
        match self.directory.read(&BlockPath::new(&self.name, index)).and_then(Block::open) {
            Ok(block) => Some(block).filter(|block| block.header.index == index),
            Err(error) => {
                if error.kind() == ErrorKind::InvalidData {
                    self.delete(index, &error);
                }
                None
            }
        }
    }

    #[cold]
    fn delete(&self, index: u64, why: &dyn std::fmt::Display) {
        let place = BlockPath::new(&self.name, index);
        log::debug!("disk cache: block {place}: {why}; it is read from the store");
        metrics::DISK_CACHE_BROKEN.add(1);
        self.directory.remove(&place);
    }
}

impl CachedVersion {
    /// Returns the size of the object in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether the block with this position is there.
    pub(crate) fn has(&self, position: u64) -> bool {
        self.open(position / BLOCK).is_some()
    }

    /// Returns where the first cached block after that of `position` begins, or `end`.
    pub(crate) fn missing_until(&self, position: u64, end: u64) -> u64 {
        let mut next = (position / BLOCK + 1) * BLOCK;
        while next < end && !self.has(next) {
            next += BLOCK;
        }
        next.min(end)
    }

    /// Adds the bytes of `range` to `buf` from its start on, as far as they are there. Returns how many.
    pub(crate) fn read(&self, range: Range, buf: &mut ReadBuf<'_>) -> u64 {
        let mut position = range.start;
        while position < range.end {
            let index = position / BLOCK;
            let Some(block) = self.open(index) else {
                metrics::DISK_CACHE_MISSES.add(1);
                break;
            };
            let start = index * BLOCK;
            let wanted = Range::new(position - start, range.end.min(start + block.len) - start);
            let before = buf.filled().len();
            let outcome = self.read_block(&block, wanted, buf);
            position += (buf.filled().len() - before) as u64;
            if let Err(error) = outcome {
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
                if error.code() == Code::DataLoss {
                    self.object.delete(index, &error);
                }
                break;
            }
            metrics::DISK_CACHE_HITS.add(1);
        }
        metrics::DISK_CACHE_HIT_BYTES.add(position - range.start);
        position - range.start
    }

    /// Adds these bytes of a block.
    fn read_block(&self, block: &Block, wanted: Range, buf: &mut ReadBuf<'_>) -> Result<()> {
        let mut position = wanted.start;
        while position < wanted.end {
            let grain = position / GRAIN * GRAIN;
            let whole = match wanted.end == block.len {
                true => wanted.end,
                false => wanted.end / GRAIN * GRAIN,
            };
            if position == grain && whole > position {
                block.read(Range::new(position, whole), buf)?;
                position = whole;
                continue;
            }
            let end = block.len.min(grain + GRAIN);
            let mut kept = self.grain.lock().unwrap_or_else(PoisonError::into_inner);
            let start = block.header.index * BLOCK;
            let range = Range::new(start + grain, start + end);
            if kept.0 != range {
                kept.0 = Range::new(0, 0);
                kept.1.resize((end - grain) as usize, 0);
                block.read(Range::new(grain, end), &mut ReadBuf::from_slice(&mut kept.1))?;
                kept.0 = range;
            }
            let to = wanted.end.min(end);
            let _ = buf.push_slice(&kept.1[(position - grain) as usize..(to - grain) as usize]);
            position = to;
        }
        Ok(())
    }

    fn open(&self, index: u64) -> Option<Arc<Block>> {
        let lock = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*lock()
            && last.header.index == index
        {
            return Some(Arc::clone(last));
        }
        let block = self.object.open(index).filter(|block| block.header.digest == self.digest)?;
        let block = Arc::new(block);
        *lock() = Some(Arc::clone(&block));
        Some(block)
    }

    /// Writes a block in a separate thread. Skips it beyond half of the cache, or if the disk is slow or has failed.
    ///
    /// It must run on the worker threads, or in [`Process::block_on`](crate::Process::block_on).
    pub(crate) async fn keep<P>(
        self: Arc<Self>,
        index: u64,
        pieces: Vec<P>,
        budget: &Arc<MemoryBudget>,
    ) where
        P: AsRef<[u8]> + Send + Sync + 'static,
    {
        // One object may take half of the cache: beyond that it would only replace its own blocks.
        if (index + 1).saturating_mul(BLOCK) > self.object.directory.space.limit() / 2 {
            return;
        }
        let Some(permit) = self.object.directory.permit().await else { return };
        let reserved = budget.overdraw(pieces.iter().map(|piece| piece.as_ref().len()).sum());
        tokio::task::spawn_blocking(move || {
            self.write(index, &pieces);
            drop((pieces, reserved, permit));
        });
    }

    fn write(&self, index: u64, pieces: &[impl AsRef<[u8]>]) {
        let object = &self.object;
        let is_there = object.open(index).is_some_and(|block| block.header.digest == self.digest);
        if is_there {
            return;
        }
        let header =
            Header { digest: self.digest, index, size: self.size, etag: self.etag.clone() };
        let len = pieces.iter().map(|piece| piece.as_ref().len() as u64).sum();
        let place = BlockPath::new(&object.name, index);
        let outcome = object
            .directory
            .write(&place, block::file_len(len), |file| block::write(file, &header, pieces));
        if let Err(error) = outcome {
            object.directory.failed(&error);
        }
    }
}
