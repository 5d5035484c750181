//! Memory for what is read ahead, used repeatedly.

use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a chunk. Most parts are whole multiples of it.
pub(super) const CHUNK: usize = 256 << 10;
/// Chunks kept for the next part: fresh memory costs as much as the bytes that are read into it.
const KEPT: usize = 64;

/// Chunks that are not in use.
#[derive(Debug, Default)]
pub(super) struct ChunkPool(Mutex<Vec<Vec<u8>>>);

/// Bytes that arrived.
#[derive(Debug)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    home: Arc<ChunkPool>,
}

impl ChunkPool {
    /// Returns empty memory for up to `len` bytes, at most [`CHUNK`].
    pub(super) fn take(self: &Arc<Self>, len: usize) -> Chunk {
        let len = len.min(CHUNK);
        let kept = (len > CHUNK / 2).then(|| self.lock().pop()).flatten();
        let bytes =
            kept.unwrap_or_else(|| Vec::with_capacity(if len > CHUNK / 2 { CHUNK } else { len }));
        Chunk { bytes, home: Arc::clone(self) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chunk {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() == CHUNK {
            bytes.clear();
            let mut kept = self.home.lock();
            if kept.len() < KEPT {
                kept.push(bytes);
            }
        }
    }
}
